//! The stream of changes, as server-sent events: `status`, `log` and `run`.

use super::{Web, api::with_role};
use crate::{
    access::Operator,
    service_state::{News, Sampled},
    status::Status,
};
use axum::{
    Extension,
    body::Body,
    extract::State,
    http::header,
    response::{
        IntoResponse as _, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures_util::stream::{self, Stream};
use serde::Serialize;
use std::{convert::Infallible, sync::Arc};
use tokio::sync::{broadcast, watch};

/// Tells events of the run that goes on, a line of JSON for each, for as long as the reader wants. One who reads slowly misses
/// some.
pub(super) async fn samples(State(web): State<Arc<Web>>) -> Response {
    let events = stream::unfold(web.shared.samples(), |mut samples| async move {
        loop {
            match samples.recv().await {
                Ok(sample) => return Some((Ok::<_, Infallible>(line(&sample)), samples)),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    });
    ([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(events)).into_response()
}

fn line(sample: &Sampled) -> String {
    let mut line = serde_json::to_string(sample).unwrap_or_default();
    line.push('\n');
    line
}

/// What one page hears.
struct Subscription {
    status: watch::Receiver<Arc<Status>>,
    news: broadcast::Receiver<News>,
    operator: Operator,
}

/// Streams the status now, then each change of it, and all news.
pub(super) async fn events(
    State(web): State<Arc<Web>>,
    Extension(operator): Extension<Operator>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let mut status = web.shared.watch();
    status.mark_changed();
    let subscription = Subscription { status, news: web.shared.news(), operator };
    let events = stream::unfold(subscription, |mut subscription| async move {
        subscription.next().await.map(|event| (Ok(event), subscription))
    });
    Sse::new(events).keep_alive(KeepAlive::default())
}

impl Subscription {
    /// The next event; none when the service ends.
    async fn next(&mut self) -> Option<Event> {
        loop {
            tokio::select! {
                changed = self.status.changed() => {
                    changed.ok()?;
                    let status = self.status.borrow_and_update().clone();
                    return Some(event("status", &with_role(&status, &self.operator)));
                }
                news = self.news.recv() => match news {
                    Ok(News::Log(entry)) => return Some(event("log", &entry)),
                    Ok(News::Run(run)) => return Some(event("run", &run)),
                    // A page that reads slowly has missed some; it asks for the log again.
                    Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => return None,
                },
            }
        }
    }
}

fn event(name: &str, data: &impl Serialize) -> Event {
    // All of these have texts and numbers only.
    Event::default().event(name).json_data(data).unwrap_or_default()
}
