//! The `evb` command as people use it: real processes, real files, real sockets, real signals.

mod benching;
mod building;
mod deaths;
mod faults;
mod identity;
mod inputs;
mod joining;
mod layers;
mod limits;
mod live;
mod logging;
mod networks;
mod outputs;
mod papers;
mod phased;
mod replay;
mod sequences;
mod simulating;
mod simulation_results;
mod slow_disks;
mod soak;
mod stopping;
mod storage;
mod support;
mod sweep;
mod texts;
