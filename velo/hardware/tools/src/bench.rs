//! The benches of the hardware: C++ programs with models that Verilator generates from the sources.

use crate::{Hardware, files};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};
use xtask::{cache::Inputs, processes::Limited};

/// Longest time for one bench.
const LIMIT: Duration = Duration::from_secs(120);

/// Options of Verilator for all models: all warnings, checks within the model, and registers with random initial values.
const VERILATE: &[&str] = &["--cc", "-Wall", "--assert", "--x-initial", "unique", "--x-assign", "unique"];

/// A bench: a program, and the modules that it drives.
#[derive(Debug, Hash)]
pub(crate) struct Bench {
    pub(crate) name: &'static str,
    /// The program is `tb/<program>.cpp`.
    program: &'static str,
    /// Modules, and their parameters.
    models: &'static [(&'static str, &'static [&'static str])],
    /// The same parameters for the compiler of the program.
    defines: &'static [&'static str],
    /// Arguments of a run, and additional ones of a quick run.
    arguments: &'static [&'static str],
    quick: &'static [&'static str],
}

const VECTORS: &[&str] = &["--vectors", "vectors"];

/// All benches, the longest first.
pub(crate) const BENCHES: &[Bench] = &[
    Bench {
        name: "switch",
        program: "system",
        models: &[("velo_node", &["-GLINK=96"]), ("velo_switch", &["-GLINK=96", "-GPORTS=4"])],
        defines: &["-DLINK=96", "-DNODES=4"],
        arguments: &[],
        quick: &["--count", "10000"],
    },
    Bench {
        name: "system-16",
        program: "system",
        models: &[("velo_node", &["-GLINK=16"])],
        defines: &["-DLINK=16"],
        arguments: VECTORS,
        quick: &["--count", "10000"],
    },
    Bench {
        name: "system-96",
        program: "system",
        models: &[("velo_node", &["-GLINK=96"])],
        defines: &["-DLINK=96"],
        arguments: VECTORS,
        quick: &["--count", "10000"],
    },
    Bench {
        name: "completion",
        program: "completion",
        models: &[("velo_completion", &[])],
        defines: &[],
        arguments: VECTORS,
        quick: &["--count", "5000"],
    },
    Bench {
        name: "completion-wide",
        program: "completion",
        models: &[("velo_completion", &["-GN=34", "-GT=20"])],
        defines: &["-DMAP_N=34", "-DMAP_T=20"],
        arguments: &[],
        quick: &["--count", "5000"],
    },
    Bench {
        name: "requester",
        program: "requester",
        models: &[("velo_requester", &[])],
        defines: &[],
        arguments: VECTORS,
        quick: &[],
    },
    Bench {
        name: "requester-wide",
        program: "requester",
        models: &[("velo_requester", &["-GN=34", "-GT=20"])],
        defines: &["-DMAP_N=34", "-DMAP_T=20"],
        arguments: &[],
        quick: &[],
    },
    Bench {
        name: "link-16",
        program: "link",
        models: &[("velo_link_pair", &["-GLINK=16"])],
        defines: &["-DLINK=16"],
        arguments: &[],
        quick: &["--count", "1000"],
    },
    Bench {
        name: "link-96",
        program: "link",
        models: &[("velo_link_pair", &["-GLINK=96"])],
        defines: &["-DLINK=96"],
        arguments: &[],
        quick: &["--count", "1000"],
    },
    Bench {
        name: "crossbar",
        program: "crossbar",
        models: &[("velo_crossbar", &["-GPORTS=3"])],
        defines: &["-DPORTS=3"],
        arguments: &[],
        quick: &[],
    },
];

/// The program that writes all signals of two nodes; it is not a check.
pub(crate) const TRACE: Bench = Bench {
    name: "trace",
    program: "trace",
    models: &[("velo_node", &["-GLINK=16", "--trace"])],
    defines: &["-DLINK=16", "-DVM_TRACE=1", "-DVM_TRACE_VCD=1"],
    arguments: &[],
    quick: &[],
};

/// The end of a run.
pub(crate) enum Outcome {
    /// The run ended well; the lines that it printed.
    Passed(String),
    /// The run failed; the message that it printed.
    Failed(String),
}

impl Bench {
    /// Finds a bench by its name.
    pub(crate) fn find(name: &str) -> Result<&'static Self, String> {
        let names = || BENCHES.iter().map(|bench| bench.name).collect::<Vec<_>>().join(", ");
        BENCHES
            .iter()
            .find(|bench| bench.name == name)
            .ok_or_else(|| format!("unknown bench `{name}`: there are {}", names()))
    }

    /// Builds the bench for `sources` below the folder `built`, unless it was built from the same inputs.
    pub(crate) fn program(&self, hardware: &Hardware, sources: &Path, built: &Path) -> Result<PathBuf, String> {
        let folder = built.join(self.name);
        let (stamp, program) = (folder.join("stamp"), folder.join("bench"));
        let hash = self.inputs(hardware, sources)?.hash();
        if !fs::read_to_string(&stamp).is_ok_and(|text| text == hash) {
            self.build(hardware.runtime()?, sources, &folder, &program)?;
            files::write(&stamp, &hash)?;
        }
        Ok(program)
    }

    /// Builds the bench as [`program`](Self::program) does, and runs it.
    pub(crate) fn run(
        &self,
        hardware: &Hardware,
        sources: &Path,
        built: &Path,
        quick: bool,
    ) -> Result<Outcome, String> {
        let program = self.program(hardware, sources, built)?;
        let messages = built.join(self.name).join("stderr");
        let file = fs::File::create(&messages).map_err(|error| format!("{}: {error}", messages.display()))?;
        let mut command = Command::new(&program);
        command.args(self.arguments).args(if quick { self.quick } else { &[] }).current_dir(sources).stderr(file);
        let (status, output) = Limited::start(&mut command, LIMIT).map_err(|error| error.to_string())?.wait()?;
        match status.code() {
            Some(0) => Ok(Outcome::Passed(output)),
            Some(1) => Ok(Outcome::Failed(files::beginning(&files::read(&messages).unwrap_or_default()))),
            _ => Err(format!("{}: {status}", program.display())),
        }
    }

    /// The inputs of its build.
    pub(crate) fn inputs(&self, hardware: &Hardware, sources: &Path) -> Result<Inputs, String> {
        let inputs = hardware.inputs(sources, &[("rtl", &["sv"]), ("tb", &["sv", "cpp", "hpp"])])?;
        Ok(inputs.and((self, VERILATE)))
    }

    fn build(&self, runtime: &Runtime, sources: &Path, folder: &Path, program: &Path) -> Result<(), String> {
        files::renew(folder)?;
        for (top, parameters) in self.models {
            let mut command = Command::new("verilator");
            command.args(VERILATE).args(*parameters).args(["--top-module", top, "--Mdir"]).arg(folder);
            files::run(command.args(files::designs(sources)?).args(files::list(&sources.join("tb"), &["sv"])?))?;
        }
        // The parts of the models compile much faster as one translation unit.
        let parts = files::list(folder, &["cpp"])?;
        let names = parts.iter().filter_map(|path| path.file_name()?.to_str());
        let unit = folder.join("models.cc");
        files::write(&unit, &names.map(|name| format!("#include \"{name}\"\n")).collect::<String>())?;
        let source = sources.join("tb").join(self.program).with_extension("cpp");
        let models = folder.join("models.o");
        let mut command = runtime.compiler();
        files::run(command.args(self.defines).arg("-I").arg(folder).arg("-c").arg(&unit).arg("-o").arg(&models))?;
        let mut command = runtime.compiler();
        command.args(["-Wall", "-Wextra", "-Werror"]).args(self.defines).arg("-isystem").arg(folder).arg(source);
        files::run(command.arg(models).args(&runtime.objects).arg("-pthread").arg("-o").arg(program))
    }
}

/// The runtime library of Verilator's models.
pub(crate) struct Runtime {
    include: PathBuf,
    objects: Vec<PathBuf>,
}

impl Runtime {
    /// Compiles it in `folder`, unless the same tools, given by the hash of their versions, have done so before.
    pub(crate) fn prepare(folder: &Path, tools: &str) -> Result<Self, String> {
        let root = files::output(Command::new("verilator").args(["--getenv", "VERILATOR_ROOT"]))?;
        let include = Path::new(root.trim()).join("include");
        let parts = ["verilated", "verilated_threads"];
        let objects = parts.iter().map(|part| folder.join(part).with_extension("o")).collect();
        let (runtime, stamp) = (Self { include, objects }, folder.join("stamp"));
        if fs::read_to_string(&stamp).is_ok_and(|text| text == tools) {
            return Ok(runtime);
        }
        files::renew(folder)?;
        for (part, object) in parts.iter().zip(&runtime.objects) {
            let source = runtime.include.join(part).with_extension("cpp");
            files::run(runtime.compiler().arg("-c").arg(source).arg("-o").arg(object))?;
        }
        files::write(&stamp, tools)?;
        Ok(runtime)
    }

    fn compiler(&self) -> Command {
        let mut command = Command::new("c++");
        command.args(["-std=c++17", "-O1", "-isystem"]).arg(&self.include);
        command.arg("-isystem").arg(self.include.join("vltstd"));
        command
    }
}
