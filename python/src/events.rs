//! Event files as columns.

use crate::error::failure;
use evb_events::{Columns, EventColumns, Reader, read_columns, read_columns_behind};
use pyo3::{
    exceptions::PyIndexError,
    prelude::*,
    types::{PyByteArray, PyDict},
};
use std::{ops::Range, path::PathBuf};

/// The events of the files of a run, and the fragments that were set apart.
#[pyclass(frozen, module = "evb._native")]
pub(crate) struct Events {
    columns: EventColumns,
}

#[pymethods]
impl Events {
    /// The columns of the events, or of the fragments that were set apart, by name: the bytes of an array each.
    fn columns<'py>(&self, py: Python<'py>, apart: bool) -> PyResult<Bound<'py, PyDict>> {
        let columns = self.of(apart);
        let dict = PyDict::new(py);
        let arrays = [
            ("event", bytes(py, &columns.event, u64::to_ne_bytes)?),
            ("file", bytes(py, &columns.file, u32::to_ne_bytes)?),
            ("complete", bytes(py, &columns.complete, u8::to_ne_bytes)?),
            ("triggered", bytes(py, &columns.triggered, u64::to_ne_bytes)?),
            ("source_time", bytes(py, &columns.source_time, u64::to_ne_bytes)?),
            ("fragments_end", bytes(py, &columns.fragments_end, u64::to_ne_bytes)?),
            ("source", bytes(py, &columns.source, u16::to_ne_bytes)?),
            ("status", bytes(py, &columns.status, u8::to_ne_bytes)?),
            ("offset", bytes(py, &columns.offset, u64::to_ne_bytes)?),
            ("length", bytes(py, &columns.length, u32::to_ne_bytes)?),
            ("checksum", bytes(py, &columns.checksum, u32::to_ne_bytes)?),
            ("counter", bytes(py, &columns.counter, u64::to_ne_bytes)?),
            ("mark", bytes(py, &columns.mark, u32::to_ne_bytes)?),
            ("known", bytes(py, &columns.known, u8::to_ne_bytes)?),
            ("apart", bytes(py, &columns.apart, u8::to_ne_bytes)?),
        ];
        arrays.into_iter().try_for_each(|(name, array)| dict.set_item(name, array))?;
        Ok(dict)
    }

    /// The files of the events, or of the fragments that were set apart.
    fn files(&self, apart: bool) -> &[PathBuf] {
        &self.of(apart).files
    }

    /// Further copies of events that are stored more than once, and events whose headers are damaged: both are left out.
    fn left_out(&self) -> (u64, u64) {
        (self.columns.duplicates, self.columns.lost)
    }

    /// A part of the payload of each of these fragments, back to back: `payload[first:end]` in Python's words. `fragments` are the
    /// bytes of an array of 64-bit numbers.
    #[pyo3(signature = (fragments, first, end, apart))]
    fn payloads<'py>(
        &self,
        py: Python<'py>,
        fragments: &[u8],
        first: isize,
        end: Option<isize>,
        apart: bool,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let columns = self.of(apart);
        let fragments = numbers(fragments, columns.source.len())?;
        let part = |length: usize| part(length, first, end);
        let total = fragments.iter().map(|&fragment| part(columns.length[fragment] as usize).len()).sum();
        let read = |mut place: &mut [u8]| {
            columns.visit_payloads(fragments.iter().copied(), |_, payload| {
                let part = &payload[part(payload.len())];
                let (head, tail) = std::mem::take(&mut place).split_at_mut(part.len());
                head.copy_from_slice(part);
                place = tail;
            })
        };
        PyByteArray::new_with(py, total, |bytes| {
            py.detach(|| read(bytes)).map_err(|error| failure(error, None::<&str>))
        })
    }

    /// Reads the payloads of these fragments. Returns the numbers of those whose bytes changed since they were stored.
    fn changed(&self, py: Python<'_>, fragments: &[u8], apart: bool) -> PyResult<Vec<usize>> {
        let columns = self.of(apart);
        let fragments = numbers(fragments, columns.source.len())?;
        py.detach(|| columns.changed(fragments)).map_err(|error| failure(error, None::<&str>))
    }
}

impl Events {
    const fn of(&self, apart: bool) -> &Columns {
        if apart { &self.columns.apart } else { &self.columns.events }
    }
}

/// The range of `first..end` in so many bytes; negative places count from the end.
fn part(length: usize, first: isize, end: Option<isize>) -> Range<usize> {
    let place = |at: isize| match usize::try_from(at) {
        Ok(at) => at.min(length),
        Err(_) => length.saturating_sub(at.unsigned_abs()),
    };
    let first = place(first);
    first..end.map_or(length, place).max(first)
}

/// Numbers below `count` from the bytes of an array.
fn numbers(bytes: &[u8], count: usize) -> PyResult<Vec<usize>> {
    let (numbers, _) = bytes.as_chunks::<8>();
    let number = |bytes: &[u8; 8]| usize::try_from(u64::from_ne_bytes(*bytes)).ok().filter(|number| *number < count);
    let numbers: Option<Vec<_>> = numbers.iter().map(number).collect();
    numbers.ok_or_else(|| PyIndexError::new_err("there is no such fragment"))
}

/// An array of numbers as bytes in the order of this machine.
fn bytes<'py, T: Copy, const N: usize>(
    py: Python<'py>,
    numbers: &[T],
    to_bytes: impl Fn(T) -> [u8; N],
) -> PyResult<Bound<'py, PyByteArray>> {
    PyByteArray::new_with(py, numbers.len() * N, |bytes| {
        bytes.chunks_exact_mut(N).zip(numbers).for_each(|(place, number)| place.copy_from_slice(&to_bytes(*number)));
        Ok(())
    })
}

/// Reads the heads of the events of these files.
#[pyfunction]
pub(crate) fn read_events(py: Python<'_>, files: Vec<PathBuf>) -> PyResult<Events> {
    let columns = py.detach(|| read_columns(&files)).map_err(|error| failure(error, None::<&str>))?;
    Ok(Events { columns })
}

/// Reads the heads of the events behind these offsets, and returns up to where each file was read.
#[pyfunction]
pub(crate) fn read_events_behind(py: Python<'_>, files: Vec<(PathBuf, u64)>) -> PyResult<(Events, Vec<u64>)> {
    let (events, ends) = py.detach(|| read_columns_behind(&files)).map_err(|error| failure(error, None::<&str>))?;
    Ok((Events { columns: EventColumns { events, ..EventColumns::default() } }, ends))
}

/// The metadata of an event file as JSON; none if they are damaged.
#[pyfunction]
pub(crate) fn event_metadata(file: PathBuf) -> PyResult<Option<String>> {
    let reader = Reader::open(file).map_err(|error| failure(error, None::<&str>))?;
    reader.metadata().map(crate::report::json).transpose()
}
