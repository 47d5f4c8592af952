//! Generated parts of the hardware, compared with the crates.

use std::process::Command;

#[test]
fn the_generated_files_of_the_hardware_are_not_stale() {
    for task in ["header", "vectors"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        let output = command.args(["hw", task, "--check"]).output().expect("xtask runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
