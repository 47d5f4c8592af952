//! Tools that tests need and that a machine may lack.

use std::{env, fmt};

/// The environment variable that makes a missing tool fail a test. `cargo xtask test` sets it where all tools are installed.
const REQUIRE_TOOLS: &str = "EVB_REQUIRE_TOOLS";

/// Reports that a test is skipped because a tool is missing.
///
/// # Panics
/// Panics if `EVB_REQUIRE_TOOLS` is set.
#[track_caller]
pub fn skip_because(reason: impl fmt::Display) {
    assert!(env::var_os(REQUIRE_TOOLS).is_none(), "{REQUIRE_TOOLS} is set, but {reason}");
    eprintln!("skipped: {reason}");
}
