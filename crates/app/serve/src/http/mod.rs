//! The web side of the service: REST, the stream of changes, the page and the metrics.

mod api;
mod connections;
mod event;
mod guard;
mod page;
mod stream;

pub(crate) use connections::serve;

use crate::{access::Access, service_state::ServiceState};
use axum::{
    Router,
    extract::DefaultBodyLimit,
    middleware,
    routing::{get, post},
};
use std::sync::Arc;

/// Longest body of a request in bytes: an experiment file.
const LONGEST_BODY: usize = 1 << 20;

/// What the handlers share.
pub(crate) struct Web {
    pub(crate) shared: Arc<ServiceState>,
    pub(crate) access: Access,
}

/// All routes.
pub(crate) fn router(web: Arc<Web>) -> Router {
    let api = Router::new()
        .route("/api/status", get(api::status))
        .route("/api/events", get(stream::events))
        .route("/api/history", get(api::history))
        .route("/api/distributions", get(api::distributions))
        .route("/api/histograms", get(api::histograms))
        .route("/api/log", get(api::log))
        .route("/api/command", post(api::command))
        .route("/api/experiment", get(api::experiment).put(api::load))
        .route("/api/runs", get(api::runs))
        .route("/api/runs.csv", get(api::runs_csv))
        .route("/api/runs/{number}", get(api::run).put(api::comment))
        .route("/api/event", get(event::event))
        .route("/api/samples", get(stream::samples))
        .route("/api/fragment", get(event::fragment))
        .route("/metrics", get(api::prometheus))
        .route("/metrics/influx", get(api::influx))
        .layer(middleware::from_fn_with_state(web.clone(), guard::let_in))
        .layer(DefaultBodyLimit::max(LONGEST_BODY));
    page::routes().merge(api).layer(middleware::from_fn(guard::seal)).with_state(web)
}
