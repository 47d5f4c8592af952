//! Admission: the token of an operator is needed, and requests that other sites make in the name of a user are rejected.

use super::Web;
use crate::{
    access::{Operator, Role},
    status::Problem,
};
use axum::{
    Json,
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// Wait before the answer to a wrong token: guessing takes long.
const PENALTY: Duration = Duration::from_millis(500);

/// The role of the last token that a connection has shown.
#[derive(Clone, Default)]
pub(super) struct Shown(Arc<Mutex<Option<Role>>>);

impl Shown {
    /// The role; `None` if no token was shown.
    pub(super) fn role(&self) -> Option<Role> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn show(&self, role: Role) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(role);
    }
}

/// Lets a request in that has the token of an operator.
pub(super) async fn let_in(State(web): State<Arc<Web>>, mut request: Request, next: Next) -> Response {
    if let Some(refusal) = cross_site(&request) {
        return refuse(StatusCode::FORBIDDEN, refusal);
    }
    let operator = bearer(request.headers()).map(|token| web.access.operator(token).cloned());
    match operator {
        Some(Some(operator)) => {
            if let Some(shown) = request.extensions().get::<Shown>() {
                shown.show(operator.role);
            }
            request.extensions_mut().insert::<Operator>(operator);
            next.run(request).await
        }
        Some(None) => {
            tokio::time::sleep(PENALTY).await;
            refuse(
                StatusCode::UNAUTHORIZED,
                Problem::new(
                    "no operator has this token",
                    "the service prints it when it starts, or it is in the file of `--tokens`",
                ),
            )
        }
        None => refuse(
            StatusCode::UNAUTHORIZED,
            Problem::new("a token is needed", "send it as `Authorization: Bearer TOKEN`"),
        ),
    }
}

/// The token of a request.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ").map(str::trim)
}

/// The reason to refuse a request that another site made.
fn cross_site(request: &Request) -> Option<Problem> {
    let headers = request.headers();
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let host = text("host").unwrap_or_default();
    let is_foreign = |origin: &str| origin.split_once("://").is_none_or(|(_, place)| place != host);
    let is_cross_site = text("origin").is_some_and(is_foreign) || text("sec-fetch-site") == Some("cross-site");
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
    match (is_cross_site, changes && text("x-evb").is_none()) {
        (true, _) => Some(Problem::new("the request comes from another site", "open the page of this service itself")),
        (_, true) => {
            Some(Problem::new("the request does not say that it is meant for evb", "send the header `X-Evb: 1`"))
        }
        _ => None,
    }
}

pub(super) fn refuse(status: StatusCode, problem: Problem) -> Response {
    (status, Json(problem)).into_response()
}

/// Headers of all answers: nothing is stored, and the page takes scripts, styles and data from here only.
const SEALS: [(&str, &str); 5] = [
    ("cache-control", "no-store"),
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
];

/// Longest text of an error that is passed on, in bytes.
const LONGEST_ERROR: usize = 4096;

/// Turns errors in plain text, such as those about a wrong parameter, into those of all other answers.
async fn explain(response: Response) -> Response {
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_text = kind.is_some_and(|kind| kind.starts_with("text/plain"));
    if !(response.status().is_client_error() && is_text) {
        return response;
    }
    let status = response.status();
    let text = axum::body::to_bytes(response.into_body(), LONGEST_ERROR).await.unwrap_or_default();
    refuse(status, Problem { message: String::from_utf8_lossy(&text).into_owned(), hint: None })
}

/// Adds the headers of all answers.
pub(super) async fn seal(request: Request, next: Next) -> Response {
    let mut response = explain(next.run(request).await).await;
    for (name, value) in SEALS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
