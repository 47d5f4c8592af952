//! A filter in a WebAssembly module. It has memory of its own and imports nothing, so it can reach neither its host nor
//! the system.
//!
//! The module exports its memory and the functions of `filters/c/evb_filter.h`. The structures of the header, as a
//! compiler lays them out for 32-bit addresses, and the bytes of the fragments are written into pages that the host adds
//! to that memory, and no allocator of a module knows. They are written again for each call, so a module that writes
//! there spoils its own copy.

use crate::{
    Hello,
    code::{CodeError, Decider, Loaded, stream},
    program::ProgramError,
    wire::EventBytes,
};
use std::{fmt::Display, path::Path};
use wasmtime::{Engine, Instance, Memory, Store, StoreLimits, StoreLimitsBuilder, TypedFunc, WasmParams, WasmResults};

/// Most bytes of memory of a module.
const MOST_MEMORY: usize = 1 << 30;
/// Most entries of a table of functions.
const MOST_ENTRIES: usize = 1 << 20;
/// Bytes of a page of memory.
const PAGE: usize = 1 << 16;
/// Size of `evb_run` and of `evb_event`.
const STRUCTURE: usize = 24;
/// Size of `evb_fragment`.
const FRAGMENT: usize = 12;
/// Bytes before the first structure, so that its address is no null pointer in an empty memory.
const GUARD: usize = 8;

/// A module that is compiled and has its memory.
pub(crate) struct Module {
    store: Store<StoreLimits>,
    instance: Instance,
    space: Space,
    decide: TypedFunc<(u32, u32), i32>,
    /// The value of `evb_filter_open`.
    filter: u32,
}

/// The pages that the host has added to the memory of a module.
struct Space {
    memory: Memory,
    at: usize,
    room: usize,
    /// The bytes of the next call, as they will be at `at`.
    image: Vec<u8>,
}

/// Loads a module.
pub(crate) fn load(path: &Path) -> Result<Module, CodeError> {
    let failed = |error: wasmtime::Error| CodeError::load(path, format!("{error:#}"));
    let engine = Engine::default();
    let module = wasmtime::Module::from_file(&engine, path).map_err(failed)?;
    if let Some(import) = module.imports().next() {
        let name = format!("{}.{}", import.module(), import.name());
        return Err(CodeError::load(path, format!("it imports {name}, and a filter can import nothing")));
    }
    let limits = StoreLimitsBuilder::new().memory_size(MOST_MEMORY).memories(1).table_elements(MOST_ENTRIES).tables(4);
    let mut store = Store::new(&engine, limits.build());
    store.limiter(|limits| limits);
    let instance = Instance::new(&mut store, &module, &[]).map_err(failed)?;
    let memory = instance.get_memory(&mut store, "memory");
    let memory = memory.ok_or_else(|| CodeError::load(path, "it does not export its memory as `memory`"))?;
    let space = Space { memory, at: 0, room: 0, image: Vec::new() };
    let decide = instance.get_typed_func(&mut store, "evb_filter_decide").map_err(failed)?;
    instance.get_typed_func::<u32, u32>(&mut store, "evb_filter_open").map_err(failed)?;
    instance.get_typed_func::<u32, ()>(&mut store, "evb_filter_close").map_err(failed)?;
    Ok(Module { store, instance, space, decide, filter: 0 })
}

impl Loaded for Module {
    type Open = Self;

    fn open(mut self, hello: &Hello) -> Result<Option<Self>, ProgramError> {
        // Compilers put here what must run before everything else.
        if self.instance.get_func(&mut self.store, "_initialize").is_some() {
            self.call::<(), ()>("_initialize", ())?;
        }
        let run = self.space.place(&mut self.store, |at, image| write_run(hello, at, image))?;
        self.filter = self.call("evb_filter_open", run)?;
        Ok((self.filter != 0).then_some(self))
    }
}

impl Decider for Module {
    fn decide(&mut self, event: &EventBytes<'_>) -> Result<Option<u16>, ProgramError> {
        let event = self.space.place(&mut self.store, |at, image| write_event(event, at, image))?;
        self.decide.call(&mut self.store, (self.filter, event)).map(stream).map_err(failed)
    }

    fn close(mut self) -> Result<(), ProgramError> {
        self.call("evb_filter_close", self.filter)
    }
}

impl Module {
    fn call<P: WasmParams, R: WasmResults>(&mut self, name: &str, parameters: P) -> Result<R, ProgramError> {
        let function = self.instance.get_typed_func::<P, R>(&mut self.store, name).map_err(failed)?;
        function.call(&mut self.store, parameters).map_err(failed)
    }
}

impl Space {
    /// Writes something that knows its own address, and returns that.
    fn place(
        &mut self,
        store: &mut Store<StoreLimits>,
        write: impl Fn(usize, &mut Vec<u8>),
    ) -> Result<u32, ProgramError> {
        self.image.clear();
        write(self.at, &mut self.image);
        if self.image.len() > self.room {
            let pages = (self.image.len() + GUARD).next_power_of_two().div_ceil(PAGE);
            let first = self.memory.grow(&mut *store, pages as u64).map_err(failed)? as usize;
            (self.at, self.room) = (first * PAGE + GUARD, pages * PAGE - GUARD);
            self.image.clear();
            write(self.at, &mut self.image);
        }
        self.memory.write(store, self.at, &self.image).map_err(failed)?;
        Ok(self.at as u32)
    }
}

fn failed(error: impl Display) -> ProgramError {
    ProgramError::Failed(format!("{error:#}"))
}

/// Writes an `evb_run`, the addresses of the names and a null pointer, and the names.
fn write_run(hello: &Hello, at: usize, image: &mut Vec<u8>) {
    image.extend(hello.run.to_le_bytes());
    let numbers = [hello.builder, hello.unit, hello.streams.len() as u16, 0];
    numbers.into_iter().for_each(|number| image.extend(number.to_le_bytes()));
    address(at + STRUCTURE, image);
    image.resize(STRUCTURE, 0);
    let mut name = at + STRUCTURE + 4 * (hello.streams.len() + 1);
    for stream in &hello.streams {
        address(name, image);
        name += stream.len() + 1;
    }
    address(0, image);
    for stream in &hello.streams {
        image.extend(stream.bytes().chain([0]));
    }
}

/// Writes an `evb_event`, its fragments, and their bytes at multiples of eight.
fn write_event(event: &EventBytes<'_>, at: usize, image: &mut Vec<u8>) {
    image.extend(event.number.to_le_bytes());
    image.extend((event.fragments.len() as u16).to_le_bytes());
    image.extend(u16::from(event.complete).to_le_bytes());
    image.extend([0; 4]);
    address(at + STRUCTURE, image);
    image.resize(STRUCTURE, 0);
    let mut bytes = (STRUCTURE + FRAGMENT * event.fragments.len()).next_multiple_of(8);
    for fragment in &event.fragments {
        image.extend(fragment.source.to_le_bytes());
        image.extend([fragment.status, 0]);
        image.extend((fragment.bytes.len() as u32).to_le_bytes());
        address(at + bytes, image);
        bytes += fragment.bytes.len().next_multiple_of(8);
    }
    for fragment in &event.fragments {
        image.resize(image.len().next_multiple_of(8), 0);
        image.extend(fragment.bytes);
    }
}

fn address(address: usize, image: &mut Vec<u8>) {
    image.extend((address as u32).to_le_bytes());
}

#[cfg(test)]
mod tests;
