//! `evb node`: one node of a run.

use crate::{
    failure::Failure,
    hosts::{address, address_towards},
    signals::stop_waiting_on_signals,
    token,
};
use clap::Args;
use evb::{Config, JoinOptions};
use evb_record::Outcome;
use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

#[derive(Args)]
pub(crate) struct NodeArgs {
    /// Which node to be: `evm`, `ru` or `bu` and the index of the unit, such as `ru0`
    #[arg(long, value_name = "NAME")]
    role: String,
    /// Where `evb run --listen` waits for its nodes
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    join: SocketAddr,
    /// Where this node listens for its peers; give an address that they can reach
    #[arg(long, value_name = "HOST:PORT", value_parser = address, default_value_t = SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))]
    listen: SocketAddr,
    /// Where this node listens for control messages, if the experiment has a network for them; any port of the host of
    /// `--listen` by default
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    listen_control: Option<SocketAddr>,
    /// Folder that relative data files start from on this machine, in place of the experiment's `data.directory`
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Folder of the event files on this machine, in place of the experiment's `storage.directory`
    #[arg(long, value_name = "DIR")]
    storage: Option<PathBuf>,
    /// Longest wait for run control and for the other nodes, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    patience: u64,
    /// Run control has started this node: it is there already
    #[arg(long, hide = true)]
    spawned: bool,
    /// Read the token from standard input, and listen at the address that this machine has on the way to run control
    #[arg(long, hide = true, requires = "spawned")]
    from_stdin: bool,
    /// Do not tell errors that run control has heard: it tells them
    #[arg(long, short)]
    quiet: bool,
}

pub(crate) fn run(args: &NodeArgs) -> Result<Outcome, Failure> {
    if !Config::is_node_name(&args.role) {
        let hint = "the nodes of an event builder are called evm, ru0, bu0 and so on";
        return Err(Failure::with_hint(format!("no node is called {:?}", args.role), hint));
    }
    let (token, listen) = match args.from_stdin {
        true => (token::from_stdin()?, (address_towards(args.join)?, 0).into()),
        false => (token::shared()?, args.listen),
    };
    evb::join(&JoinOptions {
        role: args.role.clone(),
        control: args.join,
        listen,
        listen_control: args.listen_control,
        token,
        patience: Duration::from_secs(args.patience),
        control_may_come: !args.spawned,
        data_directory: args.data.clone(),
        storage_directory: args.storage.clone(),
        stop: stop_waiting_on_signals()?,
        quiet: args.quiet,
    })?;
    Ok(Outcome::Good)
}
