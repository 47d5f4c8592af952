//! Filter units read events in memory, or through pipes where they cannot: they select the same, and a filter that writes
//! to its event harms only itself.

use crate::{
    filters::{BY_PROGRAM, EVENTS, ONE_LINE, check_failure, compile, lab, languages, of_repository, physics, selected},
    support::{Lab, THREADS, good},
};
use evb_record::{Given, Record};

/// A filter that knows the first protocol only: it reads the hello and ignores the memory.
const OLD: &str = r#"
import struct, sys, os
def read():
    head = sys.stdin.buffer.read(8)
    if len(head) < 8: sys.exit()
    length, kind = struct.unpack("<II", head)
    return kind, sys.stdin.buffer.read(length)
def send(kind, body):
    os.write(1, struct.pack("<II", len(body), kind) + body)
read()
send(16, struct.pack("<4sHH", b"EVBF", 1, 0))
while True:
    kind, body = read()
    assert kind == 2
    count, at, verdicts = struct.unpack_from("<I", body)[0], 8, b""
    for _ in range(count):
        number, fragments, complete, length = struct.unpack_from("<QHHI", body, at)
        end, at, last = at + 16 + length, at + 16, 0
        while at < end:
            source, status, _, last = struct.unpack_from("<HBBI", body, at)
            at += 8 + (last + 7) // 8 * 8
        verdicts += struct.pack("<QBBHI", number, last > 1000, 0, 0, 0)
    send(17, struct.pack("<Q", count) + verdicts)
"#;

/// Events that went one way, and nothing else went.
fn given(record: &Record, way: &str) -> Given {
    let given = &record.filter.as_ref().expect("events were selected").given;
    assert_eq!(given.keys().collect::<Vec<_>>(), [way]);
    assert_eq!(given[way].events, EVENTS);
    given[way]
}

/// A lab with the example in every language.
fn examples(filter: &str) -> Lab {
    let lab = lab(&format!("[filter]\nunits = 2\n{filter}\n"), ONE_LINE);
    compile(&lab, of_repository("c/example.c"));
    lab
}

#[test]
fn every_language_selects_the_same_in_memory_and_through_pipes() {
    let kept = selected(THREADS);
    for language in languages() {
        let (in_memory, by_pipe) = (examples(language), examples(language));
        let one = good(&in_memory.run(THREADS).run());
        let other = good(&by_pipe.run(THREADS).env("EVB_FILTER_BY_PIPE", "1").run());
        assert_eq!(physics(&in_memory, &one), kept, "{language}");
        assert_eq!(physics(&by_pipe, &other), kept, "{language}");
        assert_eq!(given(&one, "memory").bytes, given(&other, "pipe").bytes);
    }
}

/// Each stored event of an example has its own bytes: filters see blocks of bundles one by one in memory, too.
#[test]
fn bundles_are_read_in_memory() {
    let lab = examples("program = [\"./example\"]");
    let bundled = ["readout.units=2", "readout.sources=4", "trigger.block=8", "trigger.events=3000"];
    let record = good(&bundled.iter().fold(lab.run(THREADS), |run, change| run.set(change)).run());
    assert_eq!(physics(&lab, &record).len() as u64, record.events.built);
    assert!(given(&record, "memory").bytes > 0);
}

#[test]
fn a_program_of_the_first_protocol_reads_its_pipe() {
    let lab = lab(BY_PROGRAM, OLD);
    let record = good(&lab.run(THREADS).run());
    assert_eq!(physics(&lab, &record), selected(THREADS));
    given(&record, "pipe");
}

/// A program that starts the filter may close the descriptor of its memory.
#[test]
fn a_filter_without_its_descriptor_reads_its_pipe() {
    for (python, way) in [
        ("import subprocess, sys; sys.exit(subprocess.run(['./example']).returncode)", "pipe"),
        ("import os; os.execv('./example', ['./example'])", "memory"),
        // Another file has the number of each descriptor.
        ("import os\nfor number in range(3, 200): os.dup2(0, number)\nos.execv('./example', ['./example'])", "pipe"),
    ] {
        let lab = examples("program = [\"python3\", \"filter.py\"]");
        lab.write("filter.py", python);
        let record = good(&lab.run(THREADS).run());
        assert_eq!(physics(&lab, &record), selected(THREADS));
        given(&record, way);
    }
}

/// A filter that writes to the bytes of event 700.
const WRITES: &str = r#"#include "evb_filter.h"
    void *evb_filter_open(const evb_run *run) { return (void *)run; }
    void evb_filter_close(void *self) { (void)self; }
    int evb_filter_decide(void *self, const evb_event *event) {
        (void)self;
        if (event->number == 700) *(uint8_t *)event->fragment[0].bytes ^= 1;
        return event->fragment[3].length > 1000 ? EVB_ACCEPT : EVB_REJECT;
    }
"#;

#[test]
fn a_filter_that_writes_to_its_event_costs_it_its_decision() {
    for code in ["program = [\"./example\"]", "library = \"./example.so\""] {
        let lab = lab(&format!("[filter]\nunits = 2\n{code}\n"), "");
        compile(&lab, lab.write("example.c", WRITES));
        check_failure(&lab, &[700], "crashed");
    }
}
