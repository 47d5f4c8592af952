//! The `evb` command as people use it: real processes, real files, real sockets, real signals.

mod building;
mod deaths;
mod faults;
mod inputs;
mod joining;
mod live;
mod replay;
mod sequences;
mod soak;
mod stopping;
mod storage;
mod support;
mod sweep;
mod texts;
