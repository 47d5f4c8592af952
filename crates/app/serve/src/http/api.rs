//! The handlers of the REST interface.

use super::{Web, guard::refuse};
use crate::{
    access::{Operator, Role},
    history::History,
    journal::{Entry, Level},
    metrics,
    registry::{self, RegistryError, RunDetails, RunRow},
    service_state::{OperatorRequest, Refusal},
    status::{Problem, Status},
};
use axum::{
    Extension, Json,
    extract::{Path, Query, State},
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
};
use evb::{Command, Distribution};
use evb_record::{Histogram, OddChannels, Record};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

/// Most runs in an answer.
const MOST_RUNS: u32 = 1000;
/// Runs in an answer, if the question does not say how many.
const RUNS: u32 = 50;
/// Longest type or comment of a run, in bytes.
const LONGEST_COMMENT: usize = 10_000;

/// A status with what its reader may do.
#[derive(Serialize)]
pub(super) struct WithRole<'a> {
    role: &'static str,
    #[serde(flatten)]
    status: &'a Status,
}

/// The status for this operator.
pub(super) fn with_role<'a>(status: &'a Status, operator: &Operator) -> WithRole<'a> {
    WithRole { role: operator.role.name(), status }
}

pub(super) async fn status(State(web): State<Arc<Web>>, Extension(operator): Extension<Operator>) -> Json<Value> {
    Json(json!(with_role(&web.shared.status(), &operator)))
}

pub(super) async fn history(State(web): State<Arc<Web>>) -> Json<History> {
    Json(web.shared.history())
}

pub(super) async fn distributions(State(web): State<Arc<Web>>) -> Json<Value> {
    let live = web.shared.live();
    let histogram =
        |of: fn(&evb::Live) -> &Distribution, scale: f64| live.as_deref().map(|live| steps(of(live), scale));
    Json(json!({
        "latency_us": histogram(|live| &live.latency_ns, 1e-3),
        "event_bytes": histogram(|live| &live.sizes.events, 1.0),
        "fragment_bytes": histogram(|live| &live.sizes.fragments, 1.0),
    }))
}

/// The histograms of the run so far, or of the last run, as in a record, each with the channels that stand out.
pub(super) async fn histograms(State(web): State<Arc<Web>>) -> Json<Value> {
    let status = web.shared.status();
    let with_odd = |histogram| WithOddChannels { histogram, odd: histogram.odd_channels() };
    Json(json!({
        "run": status.run.as_ref().map(|run| run.number),
        "histograms": status.histograms.iter().map(with_odd).collect::<Vec<_>>(),
    }))
}

/// A histogram with the channels that stand out.
#[derive(Serialize)]
struct WithOddChannels<'a> {
    #[serde(flatten)]
    histogram: &'a Histogram,
    #[serde(flatten)]
    odd: OddChannels,
}

/// A distribution as counts between edges, one more than there are counts.
fn steps(distribution: &Distribution, scale: f64) -> Value {
    let steps: Vec<_> = distribution.steps().collect();
    let first = steps.first().map(|&(low, ..)| low);
    let edges: Vec<_> =
        first.into_iter().chain(steps.iter().map(|step| step.1)).map(|edge| edge as f64 * scale).collect();
    let counts: Vec<_> = steps.iter().map(|step| step.2).collect();
    json!({ "edges": edges, "counts": counts })
}

#[derive(Deserialize)]
pub(super) struct LogQuery {
    #[serde(default)]
    after: u64,
    level: Option<String>,
}

pub(super) async fn log(State(web): State<Arc<Web>>, Query(query): Query<LogQuery>) -> Json<Vec<Entry>> {
    let level = query.level.as_deref().and_then(Level::named).unwrap_or(Level::Info);
    Json(web.shared.entries(query.after, level))
}

#[derive(Deserialize)]
pub(super) struct CommandBody {
    command: String,
    #[serde(default, rename = "type")]
    run_type: String,
    #[serde(default)]
    comment: String,
}

pub(super) async fn command(
    State(web): State<Arc<Web>>,
    Extension(operator): Extension<Operator>,
    Json(body): Json<CommandBody>,
) -> Response {
    let Some(command) = Command::named(&body.command) else {
        let names = Command::ALL.map(Command::name).join(", ");
        let problem = Problem::new(format!("{:?} is not a command", body.command), format!("use one of {names}"));
        return refuse(StatusCode::UNPROCESSABLE_ENTITY, problem);
    };
    if body.run_type.len().max(body.comment.len()) > LONGEST_COMMENT {
        return refuse(
            StatusCode::UNPROCESSABLE_ENTITY,
            Problem::new("the comment is too long", "10000 bytes are the most"),
        );
    }
    let action = match command {
        Command::Shutdown => OperatorRequest::Quit,
        command => OperatorRequest::Command { command, run_type: body.run_type, comment: body.comment },
    };
    let role = if command == Command::Shutdown { Role::Admin } else { Role::Operate };
    fulfil(&web, &operator, role, action).await
}

pub(super) async fn experiment(State(web): State<Arc<Web>>) -> Json<Value> {
    let (name, text) = web.shared.experiment();
    Json(json!({ "name": name, "text": text }))
}

#[derive(Deserialize)]
pub(super) struct ExperimentBody {
    text: String,
}

pub(super) async fn load(
    State(web): State<Arc<Web>>,
    Extension(operator): Extension<Operator>,
    Json(body): Json<ExperimentBody>,
) -> Response {
    fulfil(&web, &operator, Role::Admin, OperatorRequest::Load { text: body.text }).await
}

/// Hands a request to run control, if the operator is allowed to make it.
async fn fulfil(web: &Web, operator: &Operator, role: Role, action: OperatorRequest) -> Response {
    if operator.role < role {
        return not_allowed(operator, role);
    }
    match web.shared.request(action, &operator.name).await {
        Ok(state) => Json(json!({ "state": state.name() })).into_response(),
        Err(Refusal::Now(problem)) => refuse(StatusCode::CONFLICT, problem),
        Err(Refusal::Experiment(problem)) => refuse(StatusCode::UNPROCESSABLE_ENTITY, problem),
    }
}

fn not_allowed(operator: &Operator, role: Role) -> Response {
    let message = format!("{} may {}, and this needs {}", operator.name, operator.role.name(), role.name());
    refuse(StatusCode::FORBIDDEN, Problem::new(message, "use the token of an operator with this role"))
}

#[derive(Deserialize)]
pub(super) struct RunsQuery {
    before: Option<u64>,
    limit: Option<u32>,
}

pub(super) async fn runs(State(web): State<Arc<Web>>, Query(query): Query<RunsQuery>) -> Response {
    let limit = query.limit.unwrap_or(RUNS).clamp(1, MOST_RUNS);
    let found = web.shared.with_registry(|registry| registry.list(query.before, limit + 1));
    answer(found, |mut runs: Vec<RunRow>| {
        let more = runs.len() > limit as usize;
        runs.truncate(limit as usize);
        Json(json!({ "runs": runs, "more": more })).into_response()
    })
}

pub(super) async fn runs_csv(State(web): State<Arc<Web>>) -> Response {
    let found = web.shared.with_registry(|registry| registry.list(None, u32::MAX));
    answer(found, |runs| ([(header::CONTENT_TYPE, "text/csv; charset=utf-8")], registry::csv(&runs)).into_response())
}

pub(super) async fn run(State(web): State<Arc<Web>>, Path(number): Path<u64>) -> Response {
    let found = web.shared.with_registry(|registry| registry.show(number));
    answer(found, |run| match run {
        Some(run) => {
            let files = files(run.record.as_ref());
            Json(json!(WithFiles { run: &run, files })).into_response()
        }
        None => no_run(number),
    })
}

/// A run with its event files.
#[derive(Serialize)]
struct WithFiles<'a> {
    #[serde(flatten)]
    run: &'a RunDetails,
    files: Vec<Value>,
}

/// The event files of a run, with their sizes where this machine has them.
fn files(record: Option<&Record>) -> Vec<Value> {
    let names = record.into_iter().flat_map(|record| &record.builders).flat_map(|builder| &builder.files);
    let file = |path: &String| {
        let name = std::path::Path::new(path).file_name().map(|name| name.to_string_lossy());
        json!({ "name": name, "bytes": std::fs::metadata(path).ok().map(|file| file.len()) })
    };
    names.map(file).collect()
}

#[derive(Deserialize)]
pub(super) struct CommentBody {
    comment: String,
}

pub(super) async fn comment(
    State(web): State<Arc<Web>>,
    Extension(operator): Extension<Operator>,
    Path(number): Path<u64>,
    Json(body): Json<CommentBody>,
) -> Response {
    if operator.role < Role::Operate {
        return not_allowed(&operator, Role::Operate);
    }
    if body.comment.len() > LONGEST_COMMENT {
        return refuse(
            StatusCode::UNPROCESSABLE_ENTITY,
            Problem::new("the comment is too long", "10000 bytes are the most"),
        );
    }
    let changed = web.shared.with_registry(|registry| registry.comment(number, &body.comment));
    answer(changed, |changed| match changed {
        true => Json(json!({})).into_response(),
        false => no_run(number),
    })
}

pub(super) fn no_run(number: u64) -> Response {
    refuse(StatusCode::NOT_FOUND, Problem::new(format!("run {number} does not exist"), "`api/runs` lists all runs"))
}

/// The answer from the registry, or its error.
fn answer<T>(found: Result<T, RegistryError>, show: impl FnOnce(T) -> Response) -> Response {
    match found {
        Ok(found) => show(found),
        Err(error) => {
            tracing::error!(%error, "registry");
            refuse(StatusCode::INTERNAL_SERVER_ERROR, Problem { message: error.to_string(), hint: None })
        }
    }
}

pub(super) async fn prometheus(State(web): State<Arc<Web>>) -> Response {
    let metrics = metrics::metrics(&web.shared.status(), web.shared.live().as_deref());
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], metrics::prometheus(&metrics)).into_response()
}

pub(super) async fn influx(State(web): State<Arc<Web>>) -> Response {
    let status = web.shared.status();
    let metrics = metrics::metrics(&status, web.shared.live().as_deref());
    ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], metrics::influx(&metrics, status.now)).into_response()
}
