//! The library from C: the header is what the library has, and the conformance program and the examples run.

use evbvelo::{Arrival, Code, KIND_MESSAGE, KIND_NOTICE, VERSION};
use std::{
    collections::BTreeSet,
    env,
    fmt::Write,
    fs,
    mem::{offset_of, size_of},
    path::{Path, PathBuf},
    process::Command,
};

const CRATE: &str = env!("CARGO_MANIFEST_DIR");
const STRICT: &[&str] = &["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-pedantic", "-pthread"];

/// The folder in which cargo has put the library of this test.
fn libraries() -> PathBuf {
    env::current_exe().unwrap().parent().unwrap().to_owned()
}

fn ran(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}{err}", output.status);
    out.into_owned()
}

/// Compiles a program of C against header and library.
fn compiled(source: &Path, folder: &Path, link: &[&str]) -> PathBuf {
    let binary = folder.join(source.file_stem().unwrap());
    let mut command = Command::new("cc");
    command.args(STRICT).arg("-I").arg(Path::new(CRATE).join("include")).arg(source).arg("-o").arg(&binary);
    ran(command.args(link));
    binary
}

fn shared(folder: &Path) -> Vec<String> {
    let library = libraries().join("libevbvelo.so");
    // Programs ask for the library under the name that is in it.
    fs::copy(&library, folder.join("libevbvelo.so.0")).unwrap();
    vec![library.display().to_string(), format!("-Wl,-rpath,{}", folder.display())]
}

fn built(name: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let link = shared(folder.path());
    let link: Vec<_> = link.iter().map(String::as_str).collect();
    let binary = compiled(&Path::new(CRATE).join(name), folder.path(), &link);
    (folder, binary)
}

/// Files in memory that carry the name of a segment; a device leaves none.
fn shared_files() -> BTreeSet<String> {
    let names =
        fs::read_dir("/dev/shm").unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| name.contains("velo")).collect()
}

#[test]
fn programs_conform_with_the_shared_library() {
    let before = shared_files();
    let (_folder, binary) = built("tests/conformance.c");
    assert_eq!(ran(&mut Command::new(&binary)), "conforms\n");
    assert_eq!(shared_files(), before, "files are left behind");
}

#[test]
fn programs_conform_when_messages_come_in_blocks() {
    let (_folder, binary) = built("tests/conformance.c");
    assert_eq!(ran(Command::new(&binary).env("EVBVELO_NO_FETCH", "1")), "conforms\n");
}

#[test]
fn programs_conform_with_the_static_library() {
    let folder = tempfile::tempdir().unwrap();
    let library = libraries().join("libevbvelo.a");
    let link = [library.to_str().unwrap(), "-ldl", "-lm", "-lgcc_s", "-lrt"];
    let binary = compiled(&Path::new(CRATE).join("tests/conformance.c"), folder.path(), &link);
    assert_eq!(ran(&mut Command::new(&binary)), "conforms\n");
}

/// A declaration of a function in Rust as C writes it.
fn prototype(rust: &str) -> String {
    let (name, rest) = rust.split_once('(').unwrap();
    let (arguments, result) = rest.rsplit_once(") -> ").unwrap();
    let c = |kind: &str| match kind.trim() {
        "c_int" => "int ".to_owned(),
        "i64" => "int64_t ".to_owned(),
        "u64" => "uint64_t ".to_owned(),
        "usize" => "size_t ".to_owned(),
        "*const c_char" => "const char *".to_owned(),
        "*const c_void" => "const void *".to_owned(),
        "*mut c_void" => "void *".to_owned(),
        "*mut Handle" => "evbvelo *".to_owned(),
        "*mut *mut Handle" => "evbvelo **".to_owned(),
        "*mut Arrival" => "evbvelo_message *".to_owned(),
        "*mut [u8; Address::BYTES]" => "evbvelo_address_t *".to_owned(),
        "*const [u8; Address::BYTES]" => "const evbvelo_address_t *".to_owned(),
        other => panic!("no type of C for {other}"),
    };
    let arguments: Vec<_> = arguments.split(',').filter_map(|argument| argument.split_once(':')).collect();
    let list: Vec<_> = arguments.iter().map(|(name, kind)| format!("{}{}", c(kind), name.trim())).collect();
    format!("{}{name}({})", c(result), if list.is_empty() { "void".into() } else { list.join(", ") })
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Prototypes of the exported functions.
fn exported() -> BTreeSet<String> {
    let source = fs::read_to_string(Path::new(CRATE).join("src/ffi.rs")).unwrap();
    let functions = source.split("pub extern \"C\" fn ").skip(1).filter_map(|rest| rest.split_once(" {"));
    functions.map(|(declaration, _)| prototype(&one_line(declaration))).collect()
}

/// Prototypes in the header.
fn declared() -> BTreeSet<String> {
    let header = fs::read_to_string(Path::new(CRATE).join("include/evbvelo.h")).unwrap();
    let code: String = header.split("/*").map(|part| part.rsplit("*/").next().unwrap()).collect();
    let statements =
        code.split([';', '\n']).map(one_line).filter(|line| line.contains("evbvelo_") && line.contains('('));
    statements.filter(|line| !line.starts_with('#')).collect()
}

#[test]
fn the_header_declares_the_functions_of_the_library() {
    assert_eq!(declared(), exported(), "header, and library");
    let program = fs::read_to_string(Path::new(CRATE).join("tests/conformance.c")).unwrap();
    for prototype in exported() {
        let name = &prototype[prototype.find("evbvelo_").unwrap()..prototype.find('(').unwrap()];
        assert!(program.contains(&format!("{name}(")), "the conformance program does not call {name}");
    }
}

#[test]
fn the_header_has_the_numbers_of_the_library() {
    let mut text = String::from("#include <evbvelo.h>\n");
    let mut same = |c: &str, value: i64| writeln!(text, "_Static_assert({c} == {value}, \"{c}\");").unwrap();
    for code in Code::ALL {
        let words = format!("{code:?}").chars().fold(String::new(), |mut name, letter| {
            if letter.is_uppercase() {
                name.push('_');
            }
            name.push(letter.to_ascii_uppercase());
            name
        });
        same(&format!("EVBVELO{words}"), *code as i64);
    }
    same("EVBVELO_VERSION", VERSION.into());
    same("EVBVELO_LINE_BYTES", evb_velo_device::LINE_BYTES as i64);
    same("EVBVELO_BLOCK_BYTES", evb_velo_device::BLOCK_BYTES as i64);
    same("EVBVELO_MOST_MESSAGES", evb_velo_device::SLOTS as i64);
    same("EVBVELO_MOST_SENDERS", evb_velo_device::SENDERS as i64);
    same("EVBVELO_MOST_SENDS", evb_velo_device::NOTES as i64);
    same("EVBVELO_KIND_MESSAGE", KIND_MESSAGE.into());
    same("EVBVELO_KIND_NOTICE", KIND_NOTICE.into());
    same("sizeof(evbvelo_address_t)", evb_velo_device::Address::BYTES as i64);
    same("sizeof(evbvelo_message)", size_of::<Arrival>() as i64);
    same("offsetof(evbvelo_message, length)", offset_of!(Arrival, length) as i64);
    same("offsetof(evbvelo_message, tag)", offset_of!(Arrival, tag) as i64);
    same("offsetof(evbvelo_message, data)", offset_of!(Arrival, data) as i64);
    same("offsetof(evbvelo_message, peer)", offset_of!(Arrival, peer) as i64);
    same("offsetof(evbvelo_message, kind)", offset_of!(Arrival, kind) as i64);
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("numbers.c");
    fs::write(&source, text + "int main(void) { return 0; }\n").unwrap();
    compiled(&source, folder.path(), &[]);
}

#[test]
fn examples_run() {
    let (_folder, ping_pong) = built("examples/ping_pong.c");
    let text = ran(Command::new(&ping_pong).args(["1000", "8"]));
    assert!(text.contains("half round trip"), "{text}");
    let (_folder, many_to_one) = built("examples/many_to_one.c");
    assert_eq!(ran(Command::new(&many_to_one).args(["4", "20000"])), "80000 messages of 4 senders, each in order\n");
}

#[test]
fn an_installed_library_compiles_and_runs() {
    let (folder, stage) = (tempfile::tempdir().unwrap(), libraries());
    let prefix = folder.path().join("prefix");
    ran(Command::new("sh").arg(Path::new(CRATE).join("install.sh")).arg(&prefix).arg(&stage));
    let file = fs::read_to_string(prefix.join("lib/pkgconfig/evbvelo.pc")).unwrap();
    assert!(file.contains(&format!("prefix={}\n", prefix.display())) && !file.contains('@'), "{file}");
    let (include, lib) = (format!("-I{}/include", prefix.display()), format!("-L{}/lib", prefix.display()));
    let source = Path::new(CRATE).join("examples/ping_pong.c");
    let binary = folder.path().join("ping_pong");
    ran(Command::new("cc").args(STRICT).arg(include).arg(&source).arg("-o").arg(&binary).arg(lib).arg("-levbvelo"));
    ran(Command::new(&binary).args(["10", "8"]).env("LD_LIBRARY_PATH", prefix.join("lib")));
}
