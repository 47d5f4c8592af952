//! The subcommands, one module each.

pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod feed;
pub(crate) mod filter;
pub(crate) mod filter_unit;
pub(crate) mod new;
pub(crate) mod node;
pub(crate) mod paper;
pub(crate) mod plan;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod serve;
pub(crate) mod shell;
pub(crate) mod simulate;
pub(crate) mod sources;
pub(crate) mod sweep;
pub(crate) mod top;
pub(crate) mod twin;
