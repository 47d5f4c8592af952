//! The VELO hardware for programs over libfabric and MPI: simulates the Verilog of `velo/hardware/rtl` cycle by cycle, until all
//! programs that have opened one of its nodes have closed it, and then says what it has done.

use clap::Parser;
use evb_velo_rtl::{LINKS, NODES, RtlOptions};
use std::{error::Error, process::ExitCode, time::Duration};

/// Simulates VELO hardware that other programs use: each endpoint of provider `velo` gets a node of it, if FI_VELO_HARDWARE
/// has its NAME.
#[derive(Debug, Parser)]
#[command(name = "evb-velo-hardware", version)]
struct Arguments {
    /// 1 to 32 characters out of A-Za-z0-9._-
    name: String,
    /// Nodes, 2 to 16: two are joined back to back, more by a switch.
    #[arg(long, default_value_t = *NODES.start())]
    nodes: usize,
    /// Wires of a link in one direction: 16, 32 or 96.
    #[arg(long, default_value_t = LINKS[0])]
    wires: u32,
    /// Pages of 4 KiB of each mailbox, a power of two up to 128; each has 32 slots.
    #[arg(long, default_value_t = 16)]
    pages: u64,
    /// Longest time in seconds until the first program comes.
    #[arg(long, default_value_t = 60)]
    patience_s: u64,
    /// Jobs one after another, each with unused nodes.
    #[arg(long, default_value_t = 1)]
    jobs: u32,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("evb-velo-hardware: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(target_os = "linux")]
fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let Arguments { nodes, wires, pages, .. } = arguments;
    let options = RtlOptions { link: *wires, pages: *pages, ..RtlOptions::default() };
    evb_velo_rtl::prepare(*nodes, &options, &mut |notice| eprintln!("{notice}"))?;
    (0..arguments.jobs).try_for_each(|_| serve(arguments, &options))
}

/// Serves one job.
#[cfg(target_os = "linux")]
fn serve(arguments: &Arguments, options: &RtlOptions) -> Result<(), Box<dyn Error>> {
    let Arguments { name, nodes, patience_s, .. } = arguments;
    let service = evb_velo_rtl::Service::open(name, *nodes, options)?;
    println!("{name}: {nodes} nodes are ready");
    let report = service.serve(Duration::from_secs(*patience_s))?;
    println!("{} clock cycles, {} packets", report.cycles, report.packets);
    for (node, counts) in report.nodes.iter().enumerate() {
        let evb_velo_rtl::NodeReport { sent, received, dropped, link_errors } = counts;
        println!("node {node}: {sent} sent, {received} received, {dropped} dropped, {link_errors} link errors");
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn run(_arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    Err("nodes are offered to other programs on Linux only".into())
}
