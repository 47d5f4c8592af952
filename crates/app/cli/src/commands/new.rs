//! `evb new`: an experiment file to begin with.

use crate::failure::Failure;
use clap::{Args, ValueEnum};
use evb_record::Outcome;
use std::{
    fs::OpenOptions,
    io::{ErrorKind, Write as _},
    path::PathBuf,
};

/// A shipped example, as a template with the name of its file.
macro_rules! example {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../../../experiments/", $name, ".toml")))
    };
}

#[derive(Args)]
pub(crate) struct NewArgs {
    /// What the file is for
    #[arg(value_enum)]
    template: Template,
    /// The new file; by default it has the name of the template
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

/// What an experiment file is for.
#[derive(Clone, Copy, ValueEnum)]
enum Template {
    /// Boards with frames of their own, matched by trigger numbers
    MyFirstBoard,
    /// Two readout boards at 1 kHz, everything stored
    TestBeam,
    /// Two readout units and two builders, as fast as they go
    EventBuilder,
    /// A large event builder with a barrel shifter on links of 400 Gbit/s, to be simulated
    NetworkStudy,
    /// Traffic without an event manager, for real and simulated
    Benchmark,
}

impl Template {
    /// The name and the text of the example.
    const fn example(self) -> (&'static str, &'static str) {
        match self {
            Self::MyFirstBoard => example!("own-boards"),
            Self::TestBeam => example!("test-beam"),
            Self::EventBuilder => example!("two-by-two"),
            Self::NetworkStudy => example!("shift-512"),
            Self::Benchmark => example!("gather"),
        }
    }
}

pub(crate) fn run(args: &NewArgs) -> Result<Outcome, Failure> {
    let name = args.template.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
    let file = args.file.clone().unwrap_or_else(|| format!("{name}.toml").into());
    let (example, text) = args.template.example();
    // The commands in its comments are for the new file.
    let text = text.replace(&format!("experiments/{example}.toml"), &file.to_string_lossy());
    let written =
        OpenOptions::new().write(true).create_new(true).open(&file).and_then(|mut new| new.write_all(text.as_bytes()));
    written.map_err(|error| {
        let message = format!("cannot write {}: {error}", file.display());
        match error.kind() {
            ErrorKind::AlreadyExists => Failure::with_hint(message, "a file that exists is not written over"),
            _ => Failure::new(message),
        }
    })?;
    println!("{} is there. Its first lines say how to use it; `evb check {0}` shows every key.", file.display());
    Ok(Outcome::Good)
}
