//! Compilation of the simulated hardware by Verilator and a C++ compiler, from the sources in this binary.

use crate::RtlError;
use evb_os::compiled::said;
use include_dir::{Dir, include_dir};
use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::OnceLock,
    thread,
};

static RTL: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../velo/hardware/rtl");
const SHIM: &str = include_str!("../sim/evb_velo.cpp");

const VERILATOR: &str = "verilator";
const COMPILER: &str = "g++";

/// The package that all modules use.
const PACKAGE: &str = "velo_pkg.sv";
const NODE: Model = Model { module: "velo_node", prefix: "VeloNode" };
const SWITCH: Model = Model { module: "velo_switch", prefix: "VeloSwitch" };

/// Options for fast models that begin with zeros everywhere, and are the same each time.
const VERILATOR_OPTIONS: [&str; 9] =
    ["--cc", "-O3", "--noassert", "-Wno-fatal", "--x-assign", "fast", "--x-initial", "fast", "-y"];
const COMPILER_OPTIONS: [&str; 4] = ["-std=gnu++17", "-O1", "-fPIC", "-pthread"];
const LINKER_OPTIONS: [&str; 3] = ["-shared", "-pthread", "-Wl,--no-undefined"];
/// Sources of Verilator that every model needs.
const RUNTIME: [&str; 2] = ["verilated.cpp", "verilated_threads.cpp"];

/// The parameters of a library.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct Shape {
    /// Wires of a link in one direction.
    pub(crate) link: u32,
    /// Ports of the switch; 0 for two nodes back to back.
    pub(crate) ports: u32,
}

/// A module, and the prefix of its C++.
#[derive(Clone, Copy, Debug, Hash)]
struct Model {
    module: &'static str,
    prefix: &'static str,
}

impl Shape {
    /// The shape for `nodes` nodes. The switch has no more ports than that, rounded up: a larger one takes longer to
    /// build and to simulate.
    pub(crate) fn of(nodes: usize, link: u32) -> Self {
        Self { link, ports: if nodes > 2 { (nodes as u32).next_power_of_two() } else { 0 } }
    }

    fn models(self) -> Vec<(Model, Vec<String>)> {
        let link = format!("-GLINK={}", self.link);
        let hub = (self.ports > 0).then(|| (SWITCH, vec![link.clone(), format!("-GPORTS={}", self.ports)]));
        [(NODE, vec![link])].into_iter().chain(hub).collect()
    }
}

/// The library of a shape.
pub(crate) fn library(shape: Shape, notice: &mut dyn FnMut(&str)) -> Result<PathBuf, RtlError> {
    let tools = tools()?;
    let sources: Vec<_> = RTL.files().map(|file| (file.path(), file.contents())).collect();
    let key = (shape.models(), tools, sources, SHIM, VERILATOR_OPTIONS, COMPILER_OPTIONS);
    evb_os::compiled::library("velo-rtl", key, |work| {
        notice("the simulation of the hardware is built, which takes some seconds; it is kept for the next time");
        build(shape, work)
    })
}

/// The versions of the tools, read once, since a suite makes many clusters.
fn tools() -> Result<&'static [String; 2], RtlError> {
    static TOOLS: OnceLock<[String; 2]> = OnceLock::new();
    if let Some(tools) = TOOLS.get() {
        return Ok(tools);
    }
    let tools = [version(VERILATOR)?, version(COMPILER)?];
    Ok(TOOLS.get_or_init(|| tools))
}

fn version(tool: &'static str) -> Result<String, RtlError> {
    let output = Command::new(tool).arg("--version").output();
    let output = output.map_err(|source| RtlError::NoTool { tool, source })?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(RtlError::NoTool { tool, source: io::Error::other(said(&output)) }),
    }
}

fn build(shape: Shape, work: &Path) -> Result<PathBuf, RtlError> {
    let (error, runtime) = (failed(VERILATOR), runtime()?);
    RTL.extract(work).map_err(&error)?;
    fs::write(work.join("evb_velo.cpp"), SHIM).map_err(&error)?;
    let mut common = vec![PathBuf::from("evb_velo.cpp")];
    common.extend(RUNTIME.map(|file| runtime.join(file)));
    let mut units = vec![common];
    for (model, parameters) in shape.models() {
        run(VERILATOR, verilate(model, &parameters).current_dir(work))?;
        units.push(sources(&work.join(model.prefix)).map_err(&error)?);
    }
    compile(shape, work, &runtime, &units)?;
    let (made, mut linker) = (work.join("library"), Command::new(COMPILER));
    linker.args(LINKER_OPTIONS).arg("-o").arg(&made);
    linker.args((0..units.len()).map(|unit| work.join(object(unit))));
    run(COMPILER, &mut linker)?;
    Ok(made)
}

fn verilate(Model { module, prefix }: Model, parameters: &[String]) -> Command {
    let mut command = Command::new(VERILATOR);
    command.args(VERILATOR_OPTIONS).arg(".").args(parameters);
    command.args(["--top-module", module, "--prefix", prefix, "--Mdir", prefix, PACKAGE]);
    command.arg(format!("{module}.sv"));
    command
}

/// The folder with the part of Verilator that every model needs.
fn runtime() -> Result<PathBuf, RtlError> {
    let output = run(VERILATOR, Command::new(VERILATOR).args(["--getenv", "VERILATOR_ROOT"]))?;
    let root = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Ok(Path::new(&root).join("include"))
}

/// The C++ of one model.
fn sources(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "cpp") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Compiles each unit as one file, all of them at the same time.
fn compile(shape: Shape, work: &Path, runtime: &Path, units: &[Vec<PathBuf>]) -> Result<(), RtlError> {
    let compile = |unit: usize| {
        let lines = units[unit].iter().map(|file| format!("#include \"{}\"\n", file.display()));
        let source = work.join(format!("unit-{unit}.cpp"));
        fs::write(&source, lines.collect::<String>()).map_err(failed(COMPILER))?;
        let mut command = Command::new(COMPILER);
        command.args(COMPILER_OPTIONS).arg(format!("-DLINK={}", shape.link)).arg(format!("-DPORTS={}", shape.ports));
        let models = shape.models().into_iter().map(|(model, _)| work.join(model.prefix));
        for folder in [work.to_owned(), runtime.to_owned(), runtime.join("vltstd")].into_iter().chain(models) {
            command.arg("-I").arg(folder);
        }
        run(COMPILER, command.arg("-c").arg(source).arg("-o").arg(work.join(object(unit)))).map(drop)
    };
    thread::scope(|scope| {
        let compile = &compile;
        let compilers: Vec<_> = (0..units.len()).map(|unit| scope.spawn(move || compile(unit))).collect();
        compilers.into_iter().try_for_each(|compiler| compiler.join().expect("a compiler does not panic"))
    })
}

fn failed(tool: &'static str) -> impl Fn(io::Error) -> RtlError {
    move |cause| RtlError::Build { tool, says: cause.to_string() }
}

fn object(unit: usize) -> String {
    format!("unit-{unit}.o")
}

fn run(tool: &'static str, command: &mut Command) -> Result<Output, RtlError> {
    let output = command.output().map_err(|source| RtlError::NoTool { tool, source })?;
    if output.status.success() { Ok(output) } else { Err(RtlError::Build { tool, says: said(&output) }) }
}
