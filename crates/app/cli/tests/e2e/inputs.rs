//! Bad input of every kind: exit status 2, an error that says what, mostly a hint, and never a panic.

use crate::support::{Evb, Lab, THREADS, good, not_good, shipped};
use std::{fs, net::TcpListener};

pub(crate) const TINY: &str = r#"
[trigger]
type = "free-running"
events = 50
[readout]
units = 2
source = { type = "fixed", size = "100 B" }
[builder]
units = 1
"#;
const TOKEN: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

/// Fails with status 2 and says all of this on standard error, and nothing on standard output.
pub(crate) fn refuses(evb: Evb, words: &[&str]) {
    let outcome = evb.run();
    assert_eq!(outcome.code(), Some(2), "{outcome}");
    assert_eq!(outcome.stdout, "", "{outcome}");
    for word in words {
        assert!(outcome.stderr.contains(word), "no {word:?}: {outcome}");
    }
}

#[test]
fn experiment_files_that_cannot_be_used_are_refused() {
    let lab = Lab::with(TINY);
    lab.write("garbage.toml", [0xff, 0xfe, 0, 1, 2]);
    lab.write("broken.toml", "[trigger\n");
    lab.write("empty.toml", "");
    lab.write("unknown.toml", TINY.replace("size =", "sise ="));
    for command in ["run", "simulate", "check"] {
        refuses(lab.evb(&[command, "missing.toml"]), &["missing.toml"]);
        refuses(lab.evb(&[command, "."]), &["."]);
        refuses(lab.evb(&[command, "garbage.toml"]), &["garbage.toml"]);
        refuses(lab.evb(&[command, "broken.toml"]), &["broken.toml:"]);
        refuses(lab.evb(&[command, "empty.toml"]), &["help"]);
        refuses(lab.evb(&[command, "unknown.toml"]), &["sise", "size", "unknown.toml:7"]);
        refuses(lab.evb(&[command, "experiment.toml", "--set", "readout.units=0"]), &["readout.units", "help"]);
        refuses(lab.evb(&[command, "experiment.toml", "--set", "nonsense"]), &["nonsense"]);
        refuses(lab.evb(&[command, "experiment.toml", "--seed", "many"]), &["many"]);
        refuses(lab.evb(&[command]), &["FILE"]);
    }
    refuses(lab.evb(&["fly"]), &["fly"]);
    refuses(lab.evb(&["run", "experiment.toml", "--processes", "--listen", "127.0.0.1:0"]), &["--listen"]);
}

#[test]
fn data_that_is_not_there_or_not_good_is_refused() {
    let replay = shipped("cms-csc-replay.toml");
    let run = |lab: &Lab| lab.evb(&["run", replay.to_str().unwrap()]);
    let lab = Lab::new();
    for mode in [&[][..], &["--processes"]] {
        refuses(run(&lab).args(mode), &["EVB_DATA", "hint: "]);
        // Whichever readout unit comes first says so.
        refuses(
            run(&lab).args(mode).env("EVB_DATA", lab.path(".")),
            &["cannot open", "cms-csc-run307511-fed84", "hint: "],
        );
    }
    for bytes in [&b""[..], &[0; 64], b"seven b", &[0x5a; 100_000]] {
        for file in ["cms-csc-run307511-fed841.raw", "cms-csc-run307511-fed843.raw"] {
            lab.write(file, bytes);
        }
        refuses(run(&lab).env("EVB_DATA", lab.path(".")), &["fed84"]);
    }
    let traced = TINY.replace("type = \"fixed\", size = \"100 B\"", "type = \"trace\", file = \"sizes.csv\"");
    let lab = Lab::with(&traced.replace("type = \"free-running\"", ""));
    refuses(lab.run(THREADS), &["sizes.csv", "hint: "]);
    for table in ["", "a,b\n", "event,source,bytes\n1,0,x\n", "event,source,bytes\n1,0,10\n1,0,10\n"] {
        lab.write("sizes.csv", table);
        refuses(lab.run(THREADS), &["sizes.csv"]);
    }
}

#[test]
fn nodes_and_feeds_that_cannot_work_are_refused() {
    let lab = Lab::with(TINY);
    let node = |arguments: &[&str]| {
        let node = lab.evb(&["node", "--join", "127.0.0.1:1", "--patience", "0"]).args(arguments);
        node.env("EVB_TOKEN", TOKEN)
    };
    refuses(node(&["--role", "dcs"]), &["dcs", "evm, ru0, bu0"]);
    refuses(node(&["--role", "ru0"]), &["cannot reach run control at 127.0.0.1:1", "hint: "]);
    refuses(node(&["--role", "ru0"]).env("EVB_TOKEN", "0011"), &["EVB_TOKEN", "64", "hint: "]);
    refuses(lab.evb(&["node", "--role", "ru0", "--join", "127.0.0.1:1"]), &["EVB_TOKEN is not set", "hint: "]);
    refuses(lab.run(&["--listen", "127.0.0.1:0"]), &["EVB_TOKEN is not set", "hint: "]);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    refuses(lab.run(&["--listen", &address]).env("EVB_TOKEN", TOKEN), &[&address, "hint: "]);

    let feed = |arguments: &[&str]| lab.evb(&["feed", "experiment.toml", "--patience", "0"]).args(arguments);
    refuses(feed(&["--to", "127.0.0.1:1"]), &["127.0.0.1:1"]);
    refuses(feed(&["--to", "nowhere"]), &["nowhere"]);
    refuses(feed(&["--to", &address, "--unit", "2"]), &["--unit 2"]);
    refuses(feed(&["--to", &address, "--counter-bits", "65"]), &["65"]);
    refuses(feed(&["--to", &address, "--rate", "fast"]), &["fast"]);
    let live = TINY.replace("type = \"fixed\", size = \"100 B\"", &format!("type = \"tcp\", listen = \"{address}\""));
    lab.write("live.toml", live.replace("units = 2", "units = 1").replace("type = \"free-running\"", ""));
    refuses(lab.evb(&["feed", "live.toml", "--to", &address]), &["live"]);
    // The port of a live source that is taken.
    for mode in [&[][..], &["--processes"]] {
        refuses(lab.evb(&["run", "live.toml"]).args(mode), &[&address]);
    }
}

/// A lab with one event file, its path and its bytes.
fn with_event_file() -> (Lab, String, Vec<u8>) {
    let lab = Lab::with(TINY);
    good(&lab.run(THREADS).run());
    let path = lab.stored_files().remove(0);
    let bytes = fs::read(&path).unwrap();
    (lab, path.to_str().unwrap().to_owned(), bytes)
}

#[test]
fn files_that_are_no_event_files_are_refused() {
    let lab = Lab::new();
    lab.write("garbage.evb", [0x5a; 5000]);
    let table = ["export", "--format", "parquet", "-o", "table"];
    let commands: [&[&str]; 5] =
        [&["verify"], &["show"], &["export", "--output", "out"], &["export", "--format", "csv"], &table];
    for command in commands {
        for file in ["missing.evb", "garbage.evb", "."] {
            let evb = lab.evb(&["events"]).args(command).args(&[file]);
            let outcome = evb.run();
            assert_eq!(outcome.code(), Some(2), "{command:?} {file}: {outcome}");
            assert!(outcome.stderr.starts_with("error: ") && outcome.stderr.contains(file), "{command:?}: {outcome}");
        }
        refuses(lab.evb(&["events"]).args(command), &["FILE"]);
    }
}

/// A file that is cut off anywhere is not a usage error: the rest of it is used, and the damage is reported.
#[test]
fn event_files_that_are_cut_off_are_damaged_but_used() {
    let (lab, path, bytes) = with_event_file();
    for length in [bytes.len() - 1, bytes.len() * 3 / 4, bytes.len() / 2, 10, 0] {
        fs::write(&path, &bytes[..length]).unwrap();
        let events = |arguments: &[&str]| lab.evb(&["events"]).args(arguments).args(&[&path]).run();
        let verify = events(&["verify"]);
        assert_eq!(verify.code(), Some(1), "{verify}");
        assert!(verify.stdout.contains("not good: "), "{verify}");
        let show = events(&["show"]);
        assert_eq!(show.code(), Some(0), "{show}");
        assert!(show.stdout.contains("not closed"), "{show}");
        let out = format!("out-{length}");
        let export = events(&["export", "--output", &out]);
        assert!(matches!(export.code(), Some(0 | 1)), "{export}");
        // Whole events only, each a header of 40 bytes and a payload of 100; none of a file that was cut before the first.
        let exported = fs::read(lab.path(&out).join("source-000.raw")).unwrap_or_default();
        assert_eq!((exported.len() % 140, exported.is_empty()), (0, length <= 10), "{export}");
    }
}

/// A flipped payload byte is reported with its event and source.
#[test]
fn a_flipped_byte_in_an_event_file_is_found() {
    let (lab, path, mut bytes) = with_event_file();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    fs::write(&path, &bytes).unwrap();
    let outcome = lab.evb(&["events", "verify", &path]).run();
    assert_eq!(outcome.code(), Some(1), "{outcome}");
    assert!(outcome.stdout.contains("damaged") && outcome.stdout.contains("not good"), "{outcome}");
}

/// Nothing is ever overwritten.
#[test]
fn an_export_does_not_overwrite() {
    let (lab, path, _) = with_event_file();
    let export = |arguments: &[&str]| lab.evb(&["events", "export", &path]).args(arguments);
    assert_eq!(export(&["--output", "raw"]).run().code(), Some(0));
    refuses(export(&["--output", "raw"]), &["source-000.raw"]);
    assert_eq!(export(&["--format", "csv", "-o", "table.csv"]).run().code(), Some(0));
    let table = fs::read_to_string(lab.path("table.csv")).unwrap();
    assert_eq!(table.lines().count(), 1 + 2 * 50);
    refuses(export(&["--format", "csv", "-o", "table.csv"]), &["table.csv"]);
    refuses(export(&[]), &["hint: "]);
    assert_eq!(fs::read_to_string(lab.path("table.csv")).unwrap(), table);
    let printed = export(&["--format", "csv"]).run();
    assert_eq!((printed.code(), printed.stdout == table), (Some(0), true), "{printed}");
}

/// Tables that only programs can read go to a file, which is new.
#[test]
fn a_table_for_programs_needs_a_new_file() {
    let (lab, path, _) = with_event_file();
    let export = |arguments: &[&str]| lab.evb(&["events", "export", &path]).args(arguments);
    for format in ["parquet", "arrow"] {
        let with = |arguments: &[&str]| export(&["--format", format]).args(arguments);
        refuses(with(&[]), &["not for a terminal", "hint: ", "--output FILE"]);
        refuses(with(&["-o", "-"]), &["not for a terminal", "--output FILE"]);
        let outcome = with(&["-o", format, "--compression", "lz4"]).run();
        assert_eq!((outcome.code(), outcome.stdout.as_str()), (Some(0), ""), "{outcome}");
        assert!(outcome.stderr.contains("exported 50 events, 100 fragments, 10000 payload bytes"), "{outcome}");
        let table = fs::read(lab.path(format)).unwrap();
        refuses(with(&["-o", format]), &[format, "is not overwritten", "hint: "]);
        assert_eq!(fs::read(lab.path(format)).unwrap(), table);
    }
    refuses(export(&["--format", "csv", "--compression", "lz4"]), &["no compression", "hint: "]);
    assert!(!lab.path("-").exists());
}

/// Standard output that is closed, as by `| head`, causes no panic.
#[test]
fn a_closed_standard_output_causes_no_panic() {
    let (lab, path, _) = with_event_file();
    let commands = [
        format!("events export {path} --format csv"),
        format!("events verify {path}"),
        format!("events show {path} --experiment"),
        "check experiment.toml".into(),
        "run experiment.toml".into(),
        "simulate experiment.toml".into(),
        "simulate --json experiment.toml".into(),
    ];
    for command in commands {
        let outcome = lab.evb(&[]).under(&["sh", "-c", &format!("\"$0\" {command} | true")]).run();
        assert!(!outcome.stderr.contains("panicked"), "{command}: {outcome}");
    }
}

/// A run whose terminal is gone goes on, and tells in its record what it could not say.
#[test]
fn a_closed_standard_error_does_not_end_a_run() {
    for mode in ["", "--processes"] {
        let lab = Lab::with(&format!("{TINY}\n[[fault]]\nnode = \"ru1\"\naction = \"kill\"\nat = \"100 ms\"\n"));
        let changes = "--set trigger.type=rate --set trigger.rate='\"100 Hz\"'";
        let script = format!(
            "{{ \"$0\" run --json experiment.toml {mode} {changes} > out.json; echo $? > status; }} 2>&1 | true; \
             while [ ! -s status ]; do sleep 0.01; done; cat out.json; exit $(cat status)"
        );
        let outcome = lab.evb(&[]).under(&["sh", "-c", &script]).run();
        assert_eq!(not_good(&outcome).lost_nodes, ["ru1"], "{outcome}");
    }
}

/// An experiment may come through a pipe, which can be read only once.
#[test]
fn an_experiment_comes_from_standard_input_or_a_pipe() {
    let text = "trigger.events = 50\nreadout.units = 2\nreadout.source = { type = 'fixed', size = '1 kB' }\n\
                builder.units = 1\nstorage.keep = 'none'\n";
    for (file, given) in [
        ("/dev/stdin", "exec \"$0\" \"$@\" < experiment.toml"),
        ("pipe", "mkfifo pipe; cat experiment.toml > pipe & exec \"$0\" \"$@\""),
    ] {
        for mode in [&[][..], &["--processes"]] {
            let lab = Lab::with(text);
            let outcome = lab.evb(&["run", "--json", file]).args(mode).under(&["bash", "-c", given]).run();
            assert_eq!(crate::support::good(&outcome).events.built, 50, "{file}: {outcome}");
        }
    }
}
