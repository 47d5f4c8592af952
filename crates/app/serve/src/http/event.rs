//! The event display: events of a file, or the latest one of the run that goes on.

use super::{Web, api::no_run, guard::refuse};
use crate::{service_state::Sampled, status::Problem};
use axum::{
    Json,
    extract::{Query, State},
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use evb_events::{Event, Found, ReadError, Reader};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Most bytes of a fragment in an answer.
const MOST_BYTES: usize = 1024;
/// Bytes at the end of a file in which the latest event is looked for.
const TAIL: u64 = 16 << 20;

#[derive(Deserialize)]
pub(super) struct EventQuery {
    run: Option<u64>,
    file: Option<String>,
    #[serde(default)]
    index: u64,
    live: Option<u8>,
}

#[derive(Deserialize)]
pub(super) struct FragmentQuery {
    run: u64,
    file: String,
    #[serde(default)]
    index: u64,
    source: String,
    #[serde(default)]
    offset: usize,
}

pub(super) async fn event(State(web): State<Arc<Web>>, Query(query): Query<EventQuery>) -> Response {
    let live = query.live.is_some_and(|live| live != 0);
    if let Some(sample) = web.shared.sample().filter(|_| live) {
        return Json(shortened(&sample)).into_response();
    }
    let (run, name, place) = match (live, query.run, query.file) {
        (true, ..) => match latest_file(&web) {
            Some((run, name)) => (run, name, Place::Latest),
            None => return nothing_stored(),
        },
        (false, Some(run), Some(file)) => (run, file, Place::Index(query.index)),
        _ => {
            return refuse(
                StatusCode::UNPROCESSABLE_ENTITY,
                Problem::new("which event?", "give run, file and index, or live=1"),
            );
        }
    };
    with_event(&web, run, name, place, move |name, event, of| {
        let index = if let Place::Index(index) = place { Some(index) } else { None };
        let fragments: Vec<_> = event
            .fragments
            .iter()
            .map(|fragment| {
                json!({
                    "source": format!("ru{}", fragment.source.0),
                    "size": fragment.bytes.len(),
                    "state": fragment.status.name(),
                    "checksum": format!("0x{:08x}", fragment.checksum),
                    "counter": fragment.counter,
                    "mark": fragment.mark.map(|mark| mark.value()),
                    "bytes": hex(&fragment.bytes, 0),
                })
            })
            .collect();
        json!({
            "event": event.id.0, "run": run, "file": name, "complete": event.complete, "size": event.payload_bytes(),
            "index": index, "of": of, "fragments": fragments,
        })
    })
    .await
}

/// A sample with the first bytes of its fragments.
fn shortened(sample: &Sampled) -> Sampled {
    let mut sample = sample.clone();
    sample.sample.fragments.iter_mut().for_each(|fragment| fragment.bytes.truncate(2 * MOST_BYTES));
    sample
}

pub(super) async fn fragment(State(web): State<Arc<Web>>, Query(query): Query<FragmentQuery>) -> Response {
    let FragmentQuery { run, file, index, source, offset } = query;
    with_event(&web, run, file, Place::Index(index), move |_, event, _| {
        let found = event.fragments.iter().find(|fragment| format!("ru{}", fragment.source.0) == source);
        let bytes = found.map(|fragment| fragment.bytes.as_ref()).unwrap_or_default();
        json!({ "offset": offset, "size": bytes.len(), "bytes": hex(bytes, offset) })
    })
    .await
}

/// The place of an event in a file.
#[derive(Clone, Copy)]
enum Place {
    /// In the order of writing, from 0.
    Index(u64),
    /// The last one.
    Latest,
}

/// Reads an event and shows it. Reading is work for a thread that may wait for the disk.
async fn with_event(
    web: &Web,
    run: u64,
    name: String,
    place: Place,
    show: impl FnOnce(&str, &Event, Option<u64>) -> Value + Send + 'static,
) -> Response {
    let path = match path_of(web, run, &name) {
        Ok(path) => path,
        Err(refusal) => return *refusal,
    };
    let read = tokio::task::spawn_blocking(move || {
        read(&path, place).map(|found| found.map(|(event, of)| show(&name, &event, of)))
    });
    match read.await {
        Ok(Ok(Some(event))) => Json(event).into_response(),
        Ok(Ok(None)) => refuse(
            StatusCode::NOT_FOUND,
            Problem::new("the file has no such event", "count from 0; `evb events show FILE` lists the events"),
        ),
        Ok(Err(error)) => refuse(
            StatusCode::NOT_FOUND,
            Problem::new(error.to_string(), "event files are read on the machine of the service"),
        ),
        Err(_) => refuse(
            StatusCode::INTERNAL_SERVER_ERROR,
            Problem { message: "the event cannot be shown".into(), hint: None },
        ),
    }
}

fn read(path: &Path, place: Place) -> Result<Option<(Event, Option<u64>)>, ReadError> {
    let mut reader = Reader::open(path)?;
    let event = match place {
        Place::Latest => reader.latest(TAIL)?,
        Place::Index(index) => match reader.nth(index)? {
            Some(Found::Event(event) | Found::Damaged { event, .. }) => Some(event),
            Some(Found::Lost(_)) | None => None,
        },
    };
    Ok(event.map(|event| (event, reader.count())))
}

/// The file of a run with this name. Only names that the record of the run has are taken, so no other file can be read.
fn path_of(web: &Web, run: u64, name: &str) -> Result<PathBuf, Box<Response>> {
    let status = web.shared.status();
    let directory =
        status.disk.as_ref().map(|disk| PathBuf::from(&disk.directory)).ok_or_else(|| Box::new(nothing_stored()))?;
    let is_current = status.run.as_ref().is_some_and(|current| current.number == run);
    let record = match (is_current, &status.record) {
        (true, Some(record)) => Some((**record).clone()),
        _ => {
            web.shared
                .with_registry(|registry| registry.show(run))
                .ok()
                .flatten()
                .ok_or_else(|| Box::new(no_run(run)))?
                .record
        }
    };
    let names = record.iter().flat_map(|record| &record.builders).flat_map(|builder| &builder.files);
    let known = names.into_iter().find(|known| Path::new(known).file_name() == Path::new(name).file_name());
    let file = known.and_then(|known| Path::new(known).file_name()).ok_or_else(|| {
        let problem = Problem::new(format!("run {run} has no file {name:?}"), "`api/runs/NUMBER` lists its files");
        Box::new(refuse(StatusCode::NOT_FOUND, problem))
    })?;
    Ok(directory.join(file))
}

/// The run that goes on, or the last one, and the file of it that was begun last.
fn latest_file(web: &Web) -> Option<(u64, String)> {
    let status = web.shared.status();
    let builders = &status.record.as_ref()?.builders;
    let busiest = builders.iter().filter(|builder| !builder.files.is_empty()).max_by_key(|builder| builder.stored)?;
    Some((status.run.as_ref()?.number, busiest.files.last()?.clone()))
}

fn nothing_stored() -> Response {
    refuse(StatusCode::NOT_FOUND, Problem::new("no event is stored", "`storage.keep` says which events are"))
}

/// The bytes from `offset` on as hexadecimal digits, at most [`MOST_BYTES`].
fn hex(bytes: &[u8], offset: usize) -> String {
    let mut text = String::new();
    for byte in bytes.iter().skip(offset).take(MOST_BYTES) {
        let _never_fails = write!(text, "{byte:02x}");
    }
    text
}
