//! Small MPI programs over the provider: Open MPI with some ranks on this machine, over shared memory and through simulated
//! hardware.

mod hardware;
#[path = "mpi/job.rs"]
mod job;

use hardware::{Hardware, Report};
use job::{Job, files, text};
use std::{
    io::{BufRead, BufReader, Read},
    time::{Duration, Instant},
};

/// Longest time until ranks see that the hardware has ended.
const LOSS: Duration = Duration::from_secs(20);

fn all_right(source: &str, ranks: &str) {
    let Some(job) = Job::build(source) else { return };
    let output = job.run(ranks, &[]);
    assert!(output.status.success() && text(&output).contains("all right\n"), "{}: {}", output.status, text(&output));
}

#[test]
fn two_ranks_exchange_all_kinds_of_messages() {
    all_right("ranks.c", "2");
}

#[test]
fn four_ranks_exchange_all_kinds_of_messages() {
    all_right("ranks.c", "4");
}

#[test]
fn threads_of_two_ranks_exchange_messages_at_the_same_time() {
    all_right("threads.c", "2");
}

#[test]
fn two_ranks_put_get_and_add_to_windows() {
    all_right("one_sided.c", "2");
}

/// A segment lives as long as a process that maps it, so it is gone when all of them are, and has no name.
#[test]
fn a_killed_rank_ends_the_job_and_leaves_no_segment() {
    let Some(job) = Job::build("ranks.c") else { return };
    let (before, output) = (files(), job.run("3", &["dies"]));
    assert!(text(&output).contains("signal 9 (Killed)"), "{}: {}", output.status, text(&output));
    job.wait_for_the_end();
    assert_eq!(files(), before, "files are left");
}

/// A job, and hardware with this many nodes for its ranks.
fn on_hardware(nodes: usize) -> Option<(Job, Hardware)> {
    let (mut job, hardware) = (Job::build("hardware.c")?, Hardware::start(nodes)?);
    job.hardware = Some(hardware.name.clone());
    Some((job, hardware))
}

/// Runs parts of the program through the hardware, which has lost nothing.
fn through_the_hardware(parts: &[&str]) -> Option<Report> {
    let (job, hardware) = on_hardware(2)?;
    let output = job.run("2", parts);
    assert!(output.status.success() && text(&output).contains("all right\n"), "{}: {}", output.status, text(&output));
    let report = hardware.finish();
    let [[sent, received, dropped, errors], other] = report.nodes[..] else { panic!("{report:?}") };
    assert_eq!(other, [received, sent, 0, 0], "what one node sends the other receives: {report:?}");
    assert_eq!((dropped, errors, report.packets), (0, 0, sent + received), "{report:?}");
    Some(report)
}

#[test]
fn two_ranks_exchange_messages_through_the_hardware() {
    let Some(report) = through_the_hardware(&["all"]) else { return };
    // 300 messages of 500 B alone, with an envelope of 24 B each, in lines of 64 B.
    assert!(report.nodes.iter().all(|[sent, ..]| *sent > 300 * 9), "{report:?}");
}

#[test]
fn four_ranks_exchange_messages_through_a_switch() {
    let Some((job, hardware)) = on_hardware(4) else { return };
    let output = job.run("4", &["together"]);
    assert!(output.status.success() && text(&output).contains("all right\n"), "{}: {}", output.status, text(&output));
    let report = hardware.finish();
    let [sent, received] = [0, 1].map(|column| report.nodes.iter().map(|node| node[column]).sum::<u64>());
    assert_eq!((sent, received), (report.packets, report.packets), "{report:?}");
    // In each of 50 turns every rank sends 64 B to each other one, with an envelope of 24 B.
    assert!(
        report.nodes.iter().all(|&[sent, _, dropped, errors]| sent >= 50 * 3 * 2 && dropped + errors == 0),
        "{report:?}"
    );
}

/// The counts are those of the messages, and cycles pass only while one is under way.
#[test]
fn a_round_trip_is_two_packets_and_some_cycles() {
    let Some(before) = through_the_hardware(&["trips", "0"]) else { return };
    let after = through_the_hardware(&["trips", "300"]).expect("as before");
    assert_eq!(after.packets - before.packets, 2 * 300);
    let cycles = (after.cycles - before.cycles) / (2 * 300);
    assert!((20..100).contains(&cycles), "{cycles} cycles for half of a round trip of 8 B");
}

#[test]
fn a_message_that_is_too_long_for_the_hardware_is_an_error_of_its_call() {
    through_the_hardware(&["long"]);
}

#[test]
fn hardware_that_is_killed_ends_the_job() {
    let Some((job, mut hardware)) = on_hardware(2) else { return };
    let (before, (_turn, mut child)) = (files(), job.start("2", &["waits"]));
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "both wait\n");
    hardware.kill();
    let killed = Instant::now();
    let mut says = String::new();
    child.stderr.take().unwrap().read_to_string(&mut says).unwrap();
    let status = child.wait().unwrap();
    assert!(!status.success() && killed.elapsed() < LOSS, "{status} after {:?}: {says}", killed.elapsed());
    assert!(says.contains(&format!("the hardware `{}` has ended", hardware.name)), "{says}");
    job.wait_for_the_end();
    assert_eq!(files(), before, "files are left");
}

#[test]
fn a_killed_rank_ends_the_job_and_then_the_hardware() {
    let Some((job, hardware)) = on_hardware(2) else { return };
    let (before, output) = (files(), job.run("2", &["dies"]));
    assert!(text(&output).contains("signal 9 (Killed)"), "{}: {}", output.status, text(&output));
    job.wait_for_the_end();
    hardware.finish();
    assert_eq!(files(), before, "files are left");
}

#[test]
fn hardware_that_does_not_run_is_an_error_that_names_it() {
    let Some(mut job) = Job::build("hardware.c") else { return };
    job.hardware = Some("nobody-has-this".to_owned());
    let output = job.run("2", &["all"]);
    let says = text(&output);
    assert!(!output.status.success() && says.contains("FI_VELO_HARDWARE=nobody-has-this: no device"), "{says}");
}
