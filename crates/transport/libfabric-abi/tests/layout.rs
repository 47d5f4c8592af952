//! The declarations against the headers that are installed.

use evb_libfabric_abi::{NUMBERS, layouts, version};
use std::{fmt::Write, process::Command};

const HEADERS: &[&str] = &[
    "fabric",
    "fi_domain",
    "fi_endpoint",
    "fi_tagged",
    "fi_rma",
    "fi_atomic",
    "fi_collective",
    "fi_cm",
    "fi_eq",
    "fi_errno",
    "providers/fi_prov",
];

/// What C must answer, in the order of the program: a name, C's expression, and the number here.
fn questions() -> Vec<(String, String, u64)> {
    let mut list = Vec::new();
    for layout in layouts() {
        for (field, offset) in layout.fields {
            let field = field.trim_start_matches("r#");
            let (name, ask) = (format!("{}.{field}", layout.name), format!("offsetof({}, {field})", layout.name));
            list.push((name, ask, offset as u64));
        }
    }
    list.extend(NUMBERS.iter().map(|&(name, value)| (name.to_owned(), name.to_owned(), value)));
    list.push(("version".into(), "FI_VERSION(1, 17)".into(), version(1, 17).into()));
    list
}

/// A C program that prints its numbers, one in a line: first the answers, then the length of each structure.
fn program() -> String {
    let mut text = String::from("#include <stddef.h>\n#include <stdio.h>\n#include <sys/uio.h>\n");
    HEADERS.iter().for_each(|header| writeln!(text, "#include <rdma/{header}.h>").unwrap());
    text.push_str("int main(void) {\n");
    let lengths = layouts().into_iter().map(|layout| format!("sizeof({})", layout.name));
    for ask in questions().into_iter().map(|(_, ask, _)| ask).chain(lengths) {
        writeln!(text, "printf(\"%llu\\n\", (unsigned long long) ({ask}));").unwrap();
    }
    text + "return 0; }\n"
}

#[test]
fn declarations_are_those_of_the_headers() {
    let folder = tempfile::tempdir().unwrap();
    let (source, binary) = (folder.path().join("layout.c"), folder.path().join("layout"));
    std::fs::write(&source, program()).unwrap();
    let built = Command::new("cc").arg(&source).arg("-o").arg(&binary).output().expect("a C compiler, `cc`");
    let complaint = String::from_utf8_lossy(&built.stderr);
    if complaint.contains("rdma/fabric.h") && complaint.contains("No such file") {
        return evb_os::tools::skip_because("libfabric's headers are not installed");
    }
    assert!(built.status.success(), "{complaint}");
    let output = String::from_utf8(Command::new(&binary).output().unwrap().stdout).unwrap();
    let theirs: Vec<u64> = output.lines().map(|line| line.parse().unwrap()).collect();
    let (answers, lengths) = theirs.split_at(questions().len());
    for ((name, _, ours), theirs) in questions().iter().zip(answers) {
        assert_eq!(ours, theirs, "{name}");
    }
    assert_eq!(lengths.len(), layouts().len());
    // A later version may append fields.
    for (layout, theirs) in layouts().iter().zip(lengths) {
        assert!(layout.bytes as u64 <= *theirs, "{} has {} bytes, and {theirs} in C", layout.name, layout.bytes);
    }
}
