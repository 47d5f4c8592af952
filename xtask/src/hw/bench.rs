//! The benches of the hardware: C++ over models that Verilator makes of the sources.

use crate::{processes::Limited, workspace::Workspace};
use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

/// Longest time for one bench.
const LIMIT: Duration = Duration::from_secs(120);

/// Options of Verilator: all warnings, checks within the model, and registers that begin at random.
const VERILATE: &[&str] = &["--cc", "-Wall", "--assert", "--x-initial", "unique", "--x-assign", "unique"];

/// Most characters of a failure that are told.
const MOST_TOLD: usize = 2000;

/// A bench: a program, and the modules that it moves.
#[derive(Debug, Hash)]
pub(crate) struct Bench {
    pub(crate) name: &'static str,
    /// The program is `tb/<program>.cpp`.
    program: &'static str,
    /// Modules, and their parameters.
    models: &'static [(&'static str, &'static [&'static str])],
    /// Parameters that the program is compiled with, so that it knows them.
    defines: &'static [&'static str],
    /// Arguments of a run, and more of a quick one.
    arguments: &'static [&'static str],
    quick: &'static [&'static str],
}

const VECTORS: &[&str] = &["--vectors", "vectors"];

/// Those that take longest come first.
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

/// The program that writes all signals of two nodes; it checks nothing.
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
    /// The bench of a name.
    pub(crate) fn find(name: &str) -> Result<&'static Self, String> {
        let names = || BENCHES.iter().map(|bench| bench.name).collect::<Vec<_>>().join(", ");
        BENCHES
            .iter()
            .find(|bench| bench.name == name)
            .ok_or_else(|| format!("no bench `{name}`: there are {}", names()))
    }

    /// Builds the bench for the sources in `hardware`, unless it is there. `built` is where everything is built; the runtime
    /// in `runtime` is that of all.
    pub(crate) fn program(&self, hardware: &Path, built: &Path, runtime: &Runtime) -> Result<PathBuf, String> {
        let folder = built.join(self.name);
        let (stamp, program) = (folder.join("stamp"), folder.join("bench"));
        let sources = format!("{:016x}", self.fingerprint(hardware, runtime)?);
        if !fs::read_to_string(&stamp).is_ok_and(|text| text == sources) {
            self.build(hardware, &folder, runtime, &program)?;
            write(&stamp, &sources)?;
        }
        Ok(program)
    }

    /// Builds the bench as [`program`](Self::program) does, and runs it.
    pub(crate) fn run(&self, hardware: &Path, built: &Path, runtime: &Runtime, quick: bool) -> Result<Outcome, String> {
        let program = self.program(hardware, built, runtime)?;
        let said = built.join(self.name).join("stderr");
        let file = fs::File::create(&said).map_err(|error| format!("{}: {error}", said.display()))?;
        let mut command = Command::new(&program);
        command.args(self.arguments).args(if quick { self.quick } else { &[] }).current_dir(hardware).stderr(file);
        let (status, output) = Limited::start(&mut command, LIMIT).map_err(|error| error.to_string())?.wait()?;
        match status.code() {
            Some(0) => Ok(Outcome::Passed(output)),
            Some(1) => Ok(Outcome::Failed(beginning(&fs::read_to_string(&said).unwrap_or_default()))),
            _ => Err(format!("{}: {status}", program.display())),
        }
    }

    /// Tells sources, tools and options from others.
    fn fingerprint(&self, hardware: &Path, runtime: &Runtime) -> Result<u64, String> {
        let mut hasher = DefaultHasher::new();
        (self, VERILATE, &runtime.version).hash(&mut hasher);
        for (folder, endings) in [("rtl", &["sv"][..]), ("tb", &["sv", "cpp", "hpp"])] {
            for path in files(&hardware.join(folder), endings)? {
                path.file_name().hash(&mut hasher);
                read(&path)?.hash(&mut hasher);
            }
        }
        Ok(hasher.finish())
    }

    fn build(&self, hardware: &Path, folder: &Path, runtime: &Runtime, program: &Path) -> Result<(), String> {
        renew(folder)?;
        for (top, parameters) in self.models {
            let mut command = Command::new("verilator");
            command.args(VERILATE).args(*parameters).args(["--top-module", top, "--Mdir"]).arg(folder);
            quietly(command.args(designs(hardware)?).args(files(&hardware.join("tb"), &["sv"])?))?;
        }
        // One translation unit of all parts of the models compiles much faster than each for itself.
        let parts = files(folder, &["cpp"])?;
        let names = parts.iter().filter_map(|path| path.file_name()?.to_str());
        let unit = folder.join("models.cc");
        write(&unit, &names.map(|name| format!("#include \"{name}\"\n")).collect::<String>())?;
        let source = hardware.join("tb").join(self.program).with_extension("cpp");
        let models = folder.join("models.o");
        quietly(
            runtime.compiler().args(self.defines).arg("-I").arg(folder).arg("-c").arg(&unit).arg("-o").arg(&models),
        )?;
        let mut command = runtime.compiler();
        command.args(["-Wall", "-Wextra", "-Werror"]).args(self.defines).arg("-isystem").arg(folder).arg(source);
        quietly(command.arg(models).args(&runtime.objects).arg("-pthread").arg("-o").arg(program))
    }
}

/// Options of Verilator for all models.
pub(crate) struct Runtime {
    version: String,
    include: PathBuf,
    objects: Vec<PathBuf>,
}

impl Runtime {
    /// Finds it, and compiles it below `folder` unless that is done.
    pub(crate) fn prepare(folder: &Path) -> Result<Self, String> {
        let version = quiet_output(Command::new("verilator").arg("--version"))?;
        let root = quiet_output(Command::new("verilator").args(["--getenv", "VERILATOR_ROOT"]))?;
        let include = Path::new(root.trim()).join("include");
        let parts = ["verilated", "verilated_threads"];
        let objects = parts.iter().map(|part| folder.join(part).with_extension("o")).collect();
        let runtime = Self { version, include, objects };
        let stamp = folder.join("version");
        if fs::read_to_string(&stamp).is_ok_and(|text| text == runtime.version) {
            return Ok(runtime);
        }
        renew(folder)?;
        for (part, object) in parts.iter().zip(&runtime.objects) {
            let source = runtime.include.join(part).with_extension("cpp");
            quietly(runtime.compiler().arg("-c").arg(source).arg("-o").arg(object))?;
        }
        write(&stamp, &runtime.version)?;
        Ok(runtime)
    }

    fn compiler(&self) -> Command {
        let mut command = Command::new("c++");
        command.args(["-std=c++17", "-O1", "-isystem"]).arg(&self.include);
        command.arg("-isystem").arg(self.include.join("vltstd"));
        command
    }
}

/// Folder in which the benches are built.
pub(crate) fn built(workspace: &Workspace) -> PathBuf {
    workspace.target.join("hw")
}

/// The synthesizable sources below `hardware`, the package first.
pub(crate) fn designs(hardware: &Path) -> Result<Vec<PathBuf>, String> {
    let mut designs = files(&hardware.join("rtl"), &["sv"])?;
    designs.sort_by_key(|path| !path.ends_with("velo_pkg.sv"));
    Ok(designs)
}

/// Names of sources as a script of Yosys has them that runs in `hardware`.
pub(crate) fn design_names(hardware: &Path) -> Result<String, String> {
    let designs = designs(hardware)?;
    let names = designs.iter().filter_map(|path| path.file_name()?.to_str());
    Ok(names.map(|name| format!("rtl/{name}")).collect::<Vec<_>>().join(" "))
}

/// Files of a folder with one of these endings, by name.
pub(crate) fn files(folder: &Path, endings: &[&str]) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.extension().and_then(|ending| ending.to_str()).is_some_and(|it| endings.contains(&it)));
    files.sort();
    Ok(files)
}

/// Makes a folder, empty.
pub(crate) fn renew(folder: &Path) -> Result<(), String> {
    let _absent = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

/// Runs a program that has something to say only when it fails.
pub(crate) fn quietly(command: &mut Command) -> Result<(), String> {
    quiet_output(command).map(|_| ())
}

pub(crate) fn quiet_output(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    Err(format!("{program}: {}\n{}", output.status, beginning(&(text(&output.stderr) + &text(&output.stdout)))))
}

fn beginning(text: &str) -> String {
    text.trim_end().chars().take(MOST_TOLD).collect()
}

pub(crate) fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
