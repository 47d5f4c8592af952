//! The file of callgrind: instructions by place in the source.

use std::collections::BTreeMap;

/// Instructions by module of this project, by name of a foreign crate, or by library.
pub(super) fn places(text: &str) -> BTreeMap<String, u64> {
    let mut reader = Reader::default();
    text.lines().for_each(|line| reader.read(line));
    reader.places
}

/// The state of reading. A name is written out at its first use, and later referred to by a number.
#[derive(Default)]
struct Reader {
    files: BTreeMap<String, String>,
    objects: BTreeMap<String, String>,
    /// Library or program of the function.
    object: String,
    /// The file of the function, and the file of the current lines, which may be inlined.
    home: String,
    current: String,
    /// The last module of this project in the function.
    module: Option<String>,
    /// The next line is the cost of a call, which is counted at the called function.
    is_call: bool,
    places: BTreeMap<String, u64>,
}

impl Reader {
    fn read(&mut self, line: &str) {
        match line.split_once('=') {
            Some(("fl", name)) => {
                self.home = named(&mut self.files, name);
                (self.current, self.module) = (self.home.clone(), None);
            }
            Some(("fi" | "fe", name)) => self.current = named(&mut self.files, name),
            Some(("ob", name)) => self.object = named(&mut self.objects, name),
            Some(("cfi" | "cfl", name)) => drop(named(&mut self.files, name)),
            Some(("cob", name)) => drop(named(&mut self.objects, name)),
            Some(("fn", _)) => self.module = None,
            Some(("calls", _)) => self.is_call = true,
            Some(_) => {}
            None => self.count(line),
        }
    }

    /// Reads a line of costs: a place and a number of instructions.
    fn count(&mut self, line: &str) {
        if !line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            return;
        }
        if std::mem::take(&mut self.is_call) {
            return;
        }
        if let Some(count) = line.split(' ').nth(1).and_then(|count| count.parse::<u64>().ok()) {
            let place = self.place();
            *self.places.entry(place).or_default() += count;
        }
    }

    /// The work of the standard library for a module counts for the module.
    fn place(&mut self) -> String {
        if let Some(module) = module(&self.current) {
            self.module = Some(module);
        }
        self.module.clone().or_else(|| module(&self.home)).unwrap_or_else(|| foreign(&self.home, &self.object))
    }
}

/// The name in `(7) name`, or the earlier one for `(7)`.
fn named(names: &mut BTreeMap<String, String>, text: &str) -> String {
    if let Some((number, name)) = text.split_once(' ') {
        names.insert(number.to_owned(), name.to_owned());
    }
    let number = text.split(' ').next().unwrap_or(text);
    names.get(number).cloned().unwrap_or_default()
}

/// A module of this project: crate and file. The crates are in folders below `crates`.
fn module(file: &str) -> Option<String> {
    let (before, path) = file.split_once("/src/")?;
    let (_, folder) = before.rsplit_once("/crates/")?;
    let package = folder.rsplit('/').next().unwrap_or(folder);
    Some(format!("{package}::{}", path.trim_end_matches(".rs").replace('/', "::")))
}

/// The name of a foreign crate, or of a library.
fn foreign(file: &str, object: &str) -> String {
    let package = file.split_once("/registry/src/").and_then(|(_, path)| path.split('/').nth(1));
    let name = package.and_then(|package| Some(package.rsplit_once('-')?.0));
    let is_std = file.starts_with("/rustc/") || file.contains("/rust/");
    let library = || if is_std { "std" } else { object.rsplit('/').next().unwrap_or(object) };
    name.map_or_else(|| library().to_owned(), |name| format!("crate {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_count_for_the_module_of_their_file() {
        let text = "\
events: Ir
ob=(1) /a/target/release/evb
fl=(1) /a/crates/network/sim/src/net/worm.rs
fn=(1) evb_sim::net::worm::settle
10 5
fi=(2) /rustc/1/library/core/src/ptr.rs
+3 7
fe=(1)
20 1
cfi=(3) /u/.cargo/registry/src/index-1/hashbrown-0.15.2/src/raw.rs
cfn=(2) hashbrown::insert
calls=2 30
21 1000
fi=(4) /a/crates/core/src/time.rs
5 2

fl=(3)
fn=(2)
* 40
fl=(5) ???
fn=(3) memcpy
ob=(2) /lib/libc.so.6
0 9
";
        let expected = [("core::time", 2), ("crate hashbrown", 40), ("libc.so.6", 9), ("sim::net::worm", 13)];
        assert_eq!(places(text), expected.map(|(place, count)| (place.to_owned(), count)).into());
    }
}
