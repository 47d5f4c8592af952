//! The page: the files of a folder, which are part of the program.

use super::Web;
use axum::{Router, http::header, routing::get};
use include_dir::{Dir, include_dir};
use std::{path::Path, sync::Arc};

static PAGE: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/page");

/// The routes of the page. It needs no token: the data do.
pub(super) fn routes() -> Router<Arc<Web>> {
    let files = PAGE.files().map(|file| (file.path(), file.contents()));
    files.fold(Router::new(), |router, (path, contents)| {
        let route = if path == Path::new("index.html") { "/".into() } else { format!("/{}", path.display()) };
        router.route(&route, get(move || async move { ([(header::CONTENT_TYPE, kind(path))], contents) }))
    })
}

/// The type of a file.
fn kind(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}
