//! `evb node`: one node of a run.

use super::run::refuse_what_is_only_simulated;
use crate::{ExperimentArgs, failure::Failure, signals::stop_waiting_on_signals, token};
use clap::Args;
use evb_node::JoinOptions;
use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

#[derive(Args)]
pub(crate) struct NodeArgs {
    #[command(flatten)]
    experiment: ExperimentArgs,
    /// Which node to be: `evm`, `ru` or `bu` and the index of the unit, such as `ru0`
    #[arg(long, value_name = "NAME")]
    role: String,
    /// Where `evb run --listen` waits for its nodes
    #[arg(long, value_name = "HOST:PORT")]
    join: SocketAddr,
    /// Where this node listens for its peers; give an address that they can reach
    #[arg(long, value_name = "HOST:PORT", default_value_t = SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))]
    listen: SocketAddr,
    /// Which point of a sweep this is, from 0
    #[arg(long, value_name = "INDEX", default_value_t = 0)]
    point: usize,
    /// Longest wait for run control and for the other nodes, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    patience: u64,
    /// Run control has started this node: it is there already
    #[arg(long, hide = true)]
    spawned: bool,
    /// Do not tell errors that run control has heard: it tells them
    #[arg(long, short)]
    quiet: bool,
}

pub(crate) fn run(args: &NodeArgs) -> Result<bool, Failure> {
    let stop = stop_waiting_on_signals()?;
    let experiment = args.experiment.load()?;
    refuse_what_is_only_simulated(&experiment)?;
    let points = experiment.plans().len();
    let (Some(plan), Some(text)) = (experiment.plans().get(args.point), experiment.resolved_at(args.point)) else {
        return Err(Failure::new(format!("--point {} is beyond the sweep of {points} points", args.point)));
    };
    let node = plan.building.node_by_name(&args.role).ok_or_else(|| {
        let (readouts, builders) = (plan.building.readout_units - 1, plan.building.builder_units - 1);
        Failure::with_hint(
            format!("this experiment has no node {:?}", args.role),
            format!("its nodes are evm, ru0 to ru{readouts} and bu0 to bu{builders}"),
        )
    })?;
    let options = JoinOptions {
        node,
        control: args.join,
        listen: args.listen,
        token: token::shared()?,
        patience: Duration::from_secs(args.patience),
        control_may_come: !args.spawned,
        stop,
        quiet: args.quiet,
    };
    evb_node::join(plan, &text, &options)?;
    Ok(true)
}
