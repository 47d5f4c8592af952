//! `[control]`: how control messages travel in a run, when not with the fragments.

use super::transport;
use crate::{
    diagnostics::Problem,
    schema::*,
    tree::{Node, Value, put_default},
    view::{Rule, View},
};
use evb_transport_registry::{TransportChoice, TransportInfo};

pub(super) const DOC: &str = "Control messages: all but what readout units send to builders. They travel with the \
fragments, or have a separate transport. A simulation has `network.control` for that. See \
[a control network](../guides/several-machines.md#a-control-network).";

pub(super) const CONTROL: &[Key] = &[optional(
    "transport",
    KeyKind::Choice(&transport::TRANSPORT),
    "transport of control messages, between nodes that are processes; `transport.type` is then \"shm\" by default. \
     Without it, control messages travel with the fragments",
)];

pub(super) const RULES: &[Rule] = &[in_threads, one_mpi];

/// Two transports need processes, which talk over shared memory if the file does not say otherwise.
pub(super) fn fill(root: &mut Node) {
    if root.at("control.transport").is_some() {
        put_default(root, &["transport", "type"], Value::Text("shm".to_owned()));
    }
}

/// The transport of control messages; `None` if they travel with the fragments.
pub(super) fn plan(view: View<'_>) -> Option<TransportChoice> {
    view.has("control.transport").then(|| transport::choice_of(view.below("control.transport")))
}

fn in_threads(view: View<'_>) -> Option<Problem> {
    view.0.at("control.transport")?;
    let of_threads = |table: &&str| about(view, table).is_one_process();
    let table = ["control.transport", "transport"].into_iter().find(of_threads)?;
    let message =
        format!("`{table}` of {:?} joins threads, and a second transport needs processes", about(view, table).name);
    let help = format!("write type = \"shm\" or \"tcp\" in [{table}], or remove [control]");
    let key = format!("{table}.type");
    Some(Problem::new(message, help).at(view.origin(&key).or_else(|| view.origin("control.transport")), "threads"))
}

fn one_mpi(view: View<'_>) -> Option<Problem> {
    view.0.at("control.transport")?;
    let both = ["control.transport", "transport"].map(|table| about(view, table).name);
    (both == ["mpi"; 2]).then(|| {
        let help = "write type = \"tcp\" in [control.transport], or remove [control]";
        Problem::new("a process has one MPI, and so one network by it", help)
            .at(view.origin("control.transport.type"), "the same network again")
    })
}

fn about(view: View<'_>, table: &str) -> &'static TransportInfo {
    transport::TRANSPORT.of(view.below(table))
}
