//! What shells, editors and manuals need to know of `evb`.

use crate::{Cli, failure::Failure};
use clap::{Args, CommandFactory as _};
use clap_complete::Shell;
use evb_record::Outcome;
use std::{fs, path::PathBuf};

#[derive(Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Args)]
pub(crate) struct ManArgs {
    /// The folder for the pages, which is created if it is missing
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

/// Prints the completions of a shell.
pub(crate) fn completions(args: &CompletionsArgs) -> Outcome {
    // The generator panics where it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "evb", &mut script);
    print!("{}", String::from_utf8_lossy(&script));
    Outcome::Good
}

/// Writes the manual pages.
pub(crate) fn manual(args: &ManArgs) -> Result<Outcome, Failure> {
    fs::create_dir_all(&args.folder)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), &args.folder))
        .map_err(|error| Failure::new(format!("cannot write to {}: {error}", args.folder.display())))?;
    Ok(Outcome::Good)
}

/// Prints the JSON Schema of the experiment file.
pub(crate) fn schema() -> Outcome {
    print!("{}", evb::json_schema());
    Outcome::Good
}
