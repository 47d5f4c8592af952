//! `[storage]`: what is kept, and where.

use crate::{
    choice::*,
    limits::*,
    plan::{Keep, StoragePlan},
    schema::*,
    view::View,
};

pub(super) const STORAGE: &[Key] = &[
    key(
        "keep",
        KeyKind::Keep { words: &KEEP, table: &[ONE_IN] },
        KeyDefault::Text("all"),
        "events that are written; unless it is `none`, incomplete events always are",
    ),
    key(
        "directory",
        KeyKind::Path,
        KeyDefault::Text("evb-data"),
        "folder of the event files, relative to the working folder",
    ),
    key(
        "file_size",
        bytes(MIN_FILE_SIZE.0, MAX_FILE_SIZE),
        KeyDefault::Text("2 GB"),
        "size at which a new event file is begun",
    ),
    key(
        "compression",
        KeyKind::Word(&COMPRESSION),
        KeyDefault::Text("none"),
        "compression of the event files; all sizes are those before it",
    ),
    key(
        "apart",
        bytes(0, MAX_FILE_SIZE),
        KeyDefault::Text("64 MB"),
        "largest size of the file with the live fragments of a readout unit that belong to no event; further ones are only \
         counted, and with \"0 B\" all",
    ),
];

/// The words that `keep` takes.
static KEEP: Words<Keep> = Words(&[word("all", "every event", Keep::All), word("none", "no event", Keep::None)]);

/// The words for files as they are (false) or compressed (true).
static COMPRESSION: Words<bool> = Words(&[
    word("none", "the bytes as they are", false),
    word("zstd", "blocks of Zstandard, each with a checksum; a builder compresses what it stores", true),
]);

/// The key of the table form of `keep`.
const ONE_IN: Key = required("one_in", integer(1, i64::MAX), "one event in this many");

pub(super) fn plan(view: View<'_>) -> StoragePlan {
    StoragePlan {
        keep: keep(view),
        directory: view.path("storage.directory"),
        file_size: view.quantity("storage.file_size"),
        compresses: COMPRESSION.at(view, "storage.compression"),
        apart: view.quantity("storage.apart"),
    }
}

/// The choice of events that are written.
pub(super) fn keep(view: View<'_>) -> Keep {
    match view.maybe_integer("storage.keep.one_in") {
        Some(n) => Keep::OneIn(n),
        None => KEEP.at(view, "storage.keep"),
    }
}
