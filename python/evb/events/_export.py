"""Events as files of other formats. Each has a row for each fragment.

Those of Parquet and Arrow have the columns of `evb events export --format parquet`."""

import json
import os
import pathlib
from typing import Any, Callable, Iterable

import numpy as np

from .. import _native
from ._events import Events, Status, open

# Bytes of payloads that are in memory at once, at least one event.
BATCH_BYTES = 64 << 20

_STATUS = [status.name.lower() for status in Status]
_APART = {
    1: "duplicate", 2: "out_of_sequence", 3: "out_of_step", 4: "early", 5: "late", 6: "mismatch", 7: "disputed", 8: "unplaced",
    9: "alone", 10: "ambiguous", 11: "out_of_window", 12: "skipped", 255: "other",
}


def export(files: "str | os.PathLike | Iterable[str | os.PathLike]", output: "str | os.PathLike", format: "str | None" = None, **options) -> None:
    """Writes the events of these files in another format: `parquet`, `arrow`, `hdf5`, `root`, or `dune` for the trigger records of DUNE
    in HDF5; by the ending of `output` if no format is given."""
    export_events(open(files), output, format, **options)


def export_events(events: Events, output, format=None, **options):
    output = pathlib.Path(output)
    name = format or _ENDINGS.get(output.suffix)
    if name not in FORMATS:
        raise ValueError(f"no format {name or output.suffix!r}: one of {', '.join(FORMATS)}")
    if output.exists():
        raise FileExistsError(f"{output} exists already and is not overwritten")
    # A file that is not whole has another name.
    part = output.with_name(output.name + ".part")
    try:
        FORMATS[name](events, part, **options)
        part.rename(output)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def batches(events: Events) -> "Iterable[Events]":
    """The events in parts whose payloads fit into memory."""
    ends = np.cumsum(events.size)
    first = 0
    while first < len(events):
        before = ends[first - 1] if first else 0
        end = max(int(np.searchsorted(ends, before + BATCH_BYTES, side="right")), first + 1)
        yield events[first:end]
        first = end


def arrow(events: Events, payload: bool = True) -> Any:
    import pyarrow as pa

    fragments, per_event = events.fragments, events.fragment_count
    repeated = lambda column: np.repeat(column, per_event)  # noqa: E731
    known = lambda values, is_known: pa.array(values, mask=~is_known)  # noqa: E731
    # Places in time are signed numbers of nanoseconds there.
    times = repeated(events.triggered)
    has_time = (times != 0) & (times < 2**63)
    builders = repeated(np.array([_builder(file) for file in events.files] or [0], "i4")[events._columns["file"]])
    is_event = fragments.apart == 0
    columns = {
        "event": known(repeated(events.event), is_event),
        "builder": known(builders.astype("u2"), (builders >= 0) & is_event),
        "source": pa.array(fragments.source),
        "source_name": _dictionary(fragments.source, dict(enumerate(events.metadata.get("sources", [])))),
        "status": _dictionary(fragments.status, dict(enumerate(_STATUS))),
        "complete": known(repeated(events.complete), is_event),
        "triggered": pa.array(times.astype("i8"), pa.timestamp("ns", "UTC"), mask=~has_time),
        "source_time": known(repeated(events.source_time), repeated(events.source_time) != 0),
        "counter": known(fragments.counter, fragments.has_counter),
        "mark": known(fragments.mark, fragments.has_mark),
        "apart": _dictionary(fragments.apart, _APART),
        "checksum": pa.array(fragments.checksum),
        "bytes": pa.array(fragments.length),
    }
    if payload:
        del columns["bytes"]
        columns["changed"] = pa.array(events.changed())
        columns["payload"] = _binary(events)
    metadata = {f"evb.{name}": value for name, value in events.metadata.items() if isinstance(value, (str, int))}
    return pa.table(columns).replace_schema_metadata({name: str(value) for name, value in metadata.items()})


def _builder(file):
    text = _native.event_metadata(file)
    return json.loads(text)["builder"] if text else -1


def _dictionary(codes, names):
    """Names by their codes; null where a code has none."""
    import pyarrow as pa

    place = np.full(2**16, -1, "i4")
    place[list(names)] = np.arange(len(names))
    places = place[codes]
    return pa.DictionaryArray.from_arrays(pa.array(places, mask=places < 0), pa.array(list(names.values()), pa.string()))


def _binary(events):
    import pyarrow as pa

    present = ~events.fragments.is_missing
    lengths = np.where(present, events.fragments.length, 0).astype("i8")
    content = events._packed(np.flatnonzero(present))
    offsets = np.concatenate([np.zeros(1, "i8"), np.cumsum(lengths)])
    validity = pa.array(present).buffers()[1]
    buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.large_binary(), len(lengths), buffers, null_count=int((~present).sum()))


def _parquet(events, file, compression="zstd"):
    import pyarrow.parquet as pq

    writer = None
    try:
        for batch in _tables(events):
            writer = writer or pq.ParquetWriter(file, batch.schema, compression=compression, use_dictionary=_SMALL)
            writer.write_table(batch)
    finally:
        if writer:
            writer.close()


# Columns with few different values.
_SMALL = ["builder", "source", "source_name", "status", "apart"]


def _arrow(events, file, compression=None):
    import pyarrow as pa

    writer = None
    try:
        for batch in _tables(events):
            writer = writer or pa.ipc.new_file(file, batch.schema, options=pa.ipc.IpcWriteOptions(compression=compression))
            writer.write_table(batch)
    finally:
        if writer:
            writer.close()


def _tables(events):
    """At least one table, for files without events."""
    if not len(events):
        yield arrow(events)
    yield from map(arrow, batches(events))


def _hdf5(events, file):
    """Datasets of one length for the columns; payloads back to back, with the place of each."""
    import h5py

    fragments = events.fragments
    columns = {
        "event": np.repeat(events.event, events.fragment_count),
        "source": fragments.source,
        "complete": np.repeat(events.complete, events.fragment_count),
        "triggered": np.repeat(events.triggered, events.fragment_count),
        "source_time": np.repeat(events.source_time, events.fragment_count),
        "counter": fragments.counter,
        "has_counter": fragments.has_counter,
        "mark": fragments.mark,
        "has_mark": fragments.has_mark,
        "checksum": fragments.checksum,
    }
    lengths = np.where(fragments.is_missing, 0, fragments.length).astype("u8")
    status = h5py.enum_dtype({status.name.lower(): status.value for status in Status}, "u1")
    with h5py.File(file, "w") as output:
        for name, value in events.metadata.items():
            output.attrs[name] = value if isinstance(value, (str, int)) else json.dumps(value)
        for name, column in columns.items():
            output.create_dataset(name, data=column)
        output.create_dataset("status", data=fragments.status, dtype=status)
        output.create_dataset("payload_start", data=np.cumsum(lengths) - lengths)
        output.create_dataset("payload_bytes", data=lengths)
        payload = output.create_dataset("payload", (int(lengths.sum()),), "u1")
        at = 0
        for batch in batches(events):
            content = batch._packed(np.flatnonzero(~batch.fragments.is_missing))
            payload[at : at + len(content)] = content
            at += len(content)


def _root(events, file):
    """A tree `fragments`, an entry for each fragment; the payload is an array of bytes."""
    import awkward as ak
    import uproot

    with uproot.recreate(file) as output:
        tree = None
        parts = list(batches(events)) if len(events) else [events]
        for batch in parts:
            fragments, repeated = batch.fragments, batch.fragment_count
            present = ~fragments.is_missing
            lengths = np.where(present, fragments.length, 0)
            columns = {
                "event": np.repeat(batch.event, repeated),
                "source": fragments.source,
                "status": fragments.status,
                "complete": np.repeat(batch.complete, repeated),
                "triggered": np.repeat(batch.triggered, repeated),
                "source_time": np.repeat(batch.source_time, repeated),
                "counter": fragments.counter,
                "has_counter": fragments.has_counter,
                "mark": fragments.mark,
                "has_mark": fragments.has_mark,
                "checksum": fragments.checksum,
                "payload": ak.unflatten(batch._packed(np.flatnonzero(present)), lengths),
            }
            if tree is None:
                types = {name: column.dtype for name, column in columns.items() if name != "payload"}
                tree = output.mktree("fragments", {**types, "payload": "var * uint8"})
            tree.extend(columns)
        output["metadata"] = json.dumps(events.metadata)


def _dune(events, file, **options):
    from ._dune import write

    write(events, file, **options)


FORMATS: "dict[str, Callable[..., None]]" = {"parquet": _parquet, "arrow": _arrow, "hdf5": _hdf5, "dune": _dune, "root": _root}

_ENDINGS = {".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow", ".h5": "hdf5", ".hdf5": "hdf5", ".root": "root"}
