//! Modules written as text, which check what they are given, trap, and want too much.

use super::*;
use crate::wire::FragmentBytes;
use std::fs;

/// A module with a memory of one page. `open` and `decide` are the bodies of the functions.
fn module(open: &str, decide: &str) -> String {
    format!(
        r#"(module (memory (export "memory") 1)
            (func $u16 (param i32) (result i32) (i32.load16_u (local.get 0)))
            (func (export "evb_filter_open") (param $run i32) (result i32) {open})
            (func (export "evb_filter_decide") (param $self i32) (param $event i32) (result i32) {decide})
            (func (export "evb_filter_close") (param i32)))"#
    )
}

/// The conjunction of expressions.
fn all(conditions: &[&str]) -> String {
    conditions.iter().fold("(i32.const 1)".into(), |all, condition| format!("(i32.and {all} {condition})"))
}

fn loaded(text: &str) -> Result<Module, CodeError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("filter.wat");
    fs::write(&path, text).unwrap();
    load(&path)
}

fn opened(text: &str) -> Option<Module> {
    let hello = Hello { run: 7, builder: 1, unit: 2, streams: vec!["physics".into(), "quarantine".into()] };
    loaded(text).unwrap().open(&hello).unwrap()
}

fn event(number: u64, last: &[u8]) -> EventBytes<'_> {
    let fragment = |source, bytes| FragmentBytes { source, status: 3, bytes };
    EventBytes { number, complete: true, fragments: vec![fragment(4, b"x"), fragment(5, last)] }
}

const ACCEPT: &str = "(i32.const 0)";
const ONE: &str = "(i32.const 1)";

#[test]
fn the_structures_are_those_of_the_header() {
    let run = all(&[
        "(i64.eq (i64.load (local.get $run)) (i64.const 7))",
        "(i32.eq (call $u16 (i32.add (local.get $run) (i32.const 8))) (i32.const 1))",
        "(i32.eq (call $u16 (i32.add (local.get $run) (i32.const 10))) (i32.const 2))",
        "(i32.eq (call $u16 (i32.add (local.get $run) (i32.const 12))) (i32.const 2))",
        "(i32.eq (i32.load8_u (i32.load offset=4 (i32.load offset=16 (local.get $run)))) (i32.const 0x71))",
        "(i32.eqz (i32.load offset=8 (i32.load offset=16 (local.get $run))))",
    ]);
    // The second fragment stands 12 bytes behind the first one.
    let last = "(i32.load offset=16 (local.get $event))";
    let decide = all(&[
        "(i32.eq (local.get $self) (i32.const 1))",
        "(i64.eq (i64.load (local.get $event)) (i64.const 9))",
        "(i32.eq (i32.load offset=8 (local.get $event)) (i32.const 0x10002))",
        &format!("(i32.eq (i32.load offset=12 {last}) (i32.const 0x30005))"),
        &format!("(i32.eq (i32.load offset=16 {last}) (i32.const 2))"),
        &format!("(i32.eq (i32.load16_u (i32.load offset=20 {last})) (i32.const 0x6261))"),
        &format!("(i32.eqz (i32.rem_u (i32.load offset=20 {last}) (i32.const 8)))"),
    ]);
    let mut module = opened(&module(&run, &format!("(i32.sub {decide} (i32.const 1))"))).expect("it is open");
    let decided = [event(9, b"ab"), event(8, b"ab"), event(9, b"ac")].map(|event| module.decide(&event).unwrap());
    assert_eq!(decided, [Some(0), None, None]);
    module.close().unwrap();
}

/// An event of any size has room, and a module that writes over it spoils no other one.
#[test]
fn a_module_that_writes_over_its_event_spoils_its_own_copy() {
    let sum = "(local $at i32) (local $end i32) (local $sum i32)
        (local.set $at (i32.load offset=20 (i32.load offset=16 (local.get $event))))
        (local.set $end (i32.add (local.get $at) (i32.load offset=16 (i32.load offset=16 (local.get $event)))))
        (loop $next
            (local.set $sum (i32.add (local.get $sum) (i32.load8_u (local.get $at))))
            (local.set $at (i32.add (local.get $at) (i32.const 1)))
            (br_if $next (i32.lt_u (local.get $at) (local.get $end))))
        (memory.fill (local.get $event) (i32.const 0xff)
            (i32.sub (i32.mul (memory.size) (i32.const 65536)) (local.get $event)))
        (local.get $sum)";
    let mut module = opened(&module(ONE, sum)).expect("it is open");
    for bytes in [1, 300, 100_000, 10, 1_000_000] {
        let payload = vec![1; bytes];
        let sum = u16::try_from(bytes).unwrap_or(u16::MAX);
        assert_eq!(module.decide(&event(1, &payload)).unwrap(), Some(sum), "{bytes}");
    }
}

#[test]
fn a_module_that_fails_says_why() {
    for (decide, why) in [
        ("unreachable", "unreachable"),
        ("(i32.load (i32.const 0x7fffffff))", "out of bounds"),
        ("(i32.div_s (i32.const 1) (i32.const 0))", "divide by zero"),
        ("(call 2 (local.get $self) (local.get $event))", "stack"),
    ] {
        let mut module = opened(&module(ONE, decide)).expect("it is open");
        let error = module.decide(&event(1, b"")).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    assert!(opened(&module("(i32.const 0)", ACCEPT)).is_none(), "a null pointer");
}

#[test]
fn a_module_has_no_more_memory_than_it_may() {
    // It may ask, and learns that there is no more.
    let mut module = opened(&module(ONE, "(memory.grow (i32.const 0x4000))")).expect("it is open");
    assert_eq!(module.decide(&event(1, b"")).unwrap(), None);
    let text = "(module (memory (export \"memory\") 0x4001))";
    assert!(loaded(text).err().expect("too much").to_string().contains("memory"));
}

#[test]
fn what_is_no_filter_is_an_error_that_says_what_it_lacks() {
    let import = "(module (import \"env\" \"print\" (func)))";
    for (text, why) in [
        ("this is no module", "filter.wat cannot be used as a filter"),
        (import, "env.print"),
        ("(module)", "`memory`"),
        ("(module (memory (export \"memory\") 1))", "evb_filter_decide"),
        (
            &module(ONE, ACCEPT).replace("(result i32) (i32.const 0)", "").replace("decide", "decided"),
            "evb_filter_decide",
        ),
    ] {
        let error = loaded(text).err().expect("no filter").to_string();
        assert!(error.contains(why), "{error}");
    }
}
