"""Events and fragments as arrays over the files."""

import enum
import functools
import glob
import json
import os
import pathlib
from typing import Any, Iterable, Iterator, Mapping

import numpy as np

from .. import _native


class Status(enum.IntEnum):
    """The status of a fragment when it was stored."""

    GOOD = 0
    CORRUPTED = 1
    MISSING = 2
    OVERSIZED = 3
    MISMATCHED = 4


# The types of the columns of the native part; `fragments_end` and `offset` become others.
_EVENT_COLUMNS = {"event": "u8", "file": "u4", "complete": "?", "triggered": "u8", "source_time": "u8", "fragments_end": "i8"}
_FRAGMENT_COLUMNS = {
    "source": "u2", "status": "u1", "offset": "i8", "length": "u4", "checksum": "u4", "counter": "u8", "mark": "u4",
    "known": "u1", "apart": "u1",
}


def open(files: "str | os.PathLike | Iterable[str | os.PathLike]") -> "Events":
    """Opens event files: a file, a pattern such as `evb-data/*.evb`, a folder, or a list of them. Give all files of a run together.

    Files of a run that goes on can be opened, too: they give what is stored so far. `follow` gives more as it comes."""
    return Events(paths_of(files))


def follow(files: "str | os.PathLike | Iterable[str | os.PathLike]", positions: "Mapping[str, int] | None" = None) -> "Follower":
    """Follows the files of a run that goes on: each `read` gives the events that were stored since the last one. New files of a pattern
    or of a folder are followed, too. `positions` of an earlier follower continue there."""
    return Follower(files, positions)


class Follower:
    """Files that are read while they are written. `follow` makes it."""

    def __init__(self, files, positions=None):
        self._given, self._ends, self._sizes = files, dict(positions or {}), {}

    @property
    def positions(self) -> "dict[str, int]":
        """Up to where each file was read: its path, and bytes from its beginning."""
        return dict(self._ends)

    def read(self) -> "Events":
        """The events that were stored since the last call, in the order of their numbers; of an event that is stored twice both
        copies. There may be none."""
        try:
            # A folder or a file may come later.
            sizes = {path: os.path.getsize(path) for path in paths_of(self._given) if os.path.isfile(path)}
        except FileNotFoundError:
            sizes = {}
        paths = [path for path, size in sizes.items() if size != self._sizes.get(path)]
        native, ends = _native.read_events_behind([(path, self._ends.get(path, 0)) for path in paths])
        self._ends.update(zip(paths, ends))
        self._sizes.update(sizes)
        events = Events(paths, native)
        return events[np.argsort(events.event, kind="stable")]


def paths_of(files):
    given = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    found = []
    for item in map(os.fspath, given):
        if os.path.isdir(item):
            found += sorted(glob.glob(os.path.join(glob.escape(item), "*.evb")))
        elif os.path.exists(item) or not glob.has_magic(item):
            found.append(item)
        else:
            found += sorted(glob.glob(item))
    if not found:
        raise FileNotFoundError(f"no event files: {', '.join(map(str, given))}")
    return found


class Fragments:
    """The fragments of events as columns: NumPy arrays with an entry for each fragment, in the order of the events."""

    def __init__(self, columns):
        self._columns = columns

    source = property(lambda self: self._columns["source"], doc="Index of the source.")
    status = property(lambda self: self._columns["status"], doc="`Status`, as a number.")
    length = property(lambda self: self._columns["length"], doc="Bytes of the payload.")
    checksum = property(lambda self: self._columns["checksum"], doc="The CRC-32C that came with the fragment.")
    counter = property(lambda self: self._columns["counter"], doc="The number that the source gave it; 0 if `has_counter` is false.")
    mark = property(lambda self: self._columns["mark"], doc="Its mark; 0 if `has_mark` is false.")
    apart = property(lambda self: self._columns["apart"], doc="Why it belongs to no event, as in the file; 0 in events.")

    @property
    def has_counter(self):
        """True where the source numbers its fragments."""
        return (self._columns["known"] & 1).astype(bool)

    @property
    def has_mark(self):
        """True where there is a mark."""
        return (self._columns["known"] & 2).astype(bool)

    @property
    def is_missing(self):
        """True where there is no payload, because the fragment did not come."""
        return self.status == Status.MISSING

    def __len__(self):
        return len(self.source)


class Fragment:
    """A fragment of an event."""

    __slots__ = ("_events", "_index")

    def __init__(self, events, index):
        self._events, self._index = events, index

    def _value(self, name):
        return self._events.fragments._columns[name][self._index].item()

    @property
    def source(self) -> str:
        """Name of its source, such as `ru0`."""
        return self._events._name(self.index)

    @property
    def index(self) -> int:
        """Index of its source."""
        return self._value("source")

    @property
    def status(self) -> Status:
        """Its status when it was stored."""
        return Status(self._value("status"))

    @property
    def counter(self) -> "int | None":
        """The number that its source gave it."""
        return self._value("counter") if self._value("known") & 1 else None

    @property
    def mark(self) -> "int | None":
        """Its mark."""
        return self._value("mark") if self._value("known") & 2 else None

    @property
    def checksum(self) -> int:
        """The CRC-32C that came with it."""
        return self._value("checksum")

    @property
    def payload(self) -> "np.ndarray | None":
        """Its bytes, a view of the file; None if it is missing."""
        return None if self.status == Status.MISSING else self._events._payload(self._index)

    def __len__(self):
        return self._value("length")

    def __repr__(self):
        return f"<Fragment {self.source}, {self.status.name.lower()}, {len(self)} bytes>"


class Event:
    """An event. `event["ru0"]` or `event[0]`, by name or by index, is the payload of a source, or None."""

    __slots__ = ("_events", "_index")

    def __init__(self, events, index):
        self._events, self._index = events, index

    @property
    def number(self) -> int:
        """Its number."""
        return self._events.event[self._index].item()

    @property
    def complete(self) -> bool:
        """True if every fragment was there and good."""
        return self._events.complete[self._index].item()

    @property
    def triggered(self) -> "int | None":
        """Time of the trigger in nanoseconds since 1970-01-01 UTC."""
        return self._events.triggered[self._index].item() or None

    @property
    def fragments(self) -> "list[Fragment]":
        """Its fragments in the order of their sources."""
        first, end = self._events._bounds[self._index : self._index + 2].tolist()
        return [Fragment(self._events, index) for index in range(first, end)]

    def __getitem__(self, source):
        is_wanted = (lambda fragment: fragment.source == source) if isinstance(source, str) else (lambda fragment: fragment.index == source)
        return next((fragment.payload for fragment in self.fragments if is_wanted(fragment)), None)

    def __repr__(self):
        return f"<Event {self.number}, {'complete' if self.complete else 'incomplete'}, {len(self.fragments)} fragments>"


class Events:
    """Events of one or more files, in the order of their numbers. `open` makes it.

    An index gives an `Event`; a slice, a mask or an array of indices gives `Events`. Copies of an event that is stored more than
    once are left out, and so are events whose headers are damaged: `left_out` counts both."""

    def __init__(self, paths, native=None, apart=False):
        self._paths = paths
        self._native = native or _native.read_events(paths)
        self._is_apart = apart
        columns = self._native.columns(apart)
        arrays = {name: np.frombuffer(columns[name], dtype) for name, dtype in {**_EVENT_COLUMNS, **_FRAGMENT_COLUMNS}.items()}
        bounds = np.concatenate([np.zeros(1, "i8"), arrays.pop("fragments_end")])
        self._set({name: arrays[name] for name in _EVENT_COLUMNS if name in arrays}, bounds,
                  {name: arrays[name] for name in _FRAGMENT_COLUMNS}, None)

    def _set(self, events, bounds, fragments, numbers):
        self._columns, self._bounds, self.fragments = events, bounds, Fragments(fragments)
        # The numbers of the fragments in the native part, where they are not all.
        self._numbers = numbers

    event = property(lambda self: self._columns["event"], doc="Number of the event; an entry for each event.")
    complete = property(lambda self: self._columns["complete"], doc="True where every fragment was there and good.")
    triggered = property(lambda self: self._columns["triggered"], doc="Time of the trigger in ns since 1970-01-01 UTC; 0 if unknown.")
    source_time = property(lambda self: self._columns["source_time"], doc="Time by the clock of the sources; 0 if unknown.")

    @property
    def time(self) -> np.ndarray:
        """Time of the trigger as `datetime64`; not a time where it is unknown."""
        return np.where(self.triggered == 0, np.datetime64("NaT"), self.triggered.astype("datetime64[ns]"))

    @property
    def fragment_count(self) -> np.ndarray:
        """Number of fragments of each event."""
        return np.diff(self._bounds)

    @property
    def size(self) -> np.ndarray:
        """Bytes of the payloads of each event."""
        total = np.concatenate([np.zeros(1, "i8"), np.cumsum(self.fragments.length, dtype="i8")])
        return total[self._bounds[1:]] - total[self._bounds[:-1]]

    @property
    def files(self) -> "list[pathlib.Path]":
        """The files that have these events."""
        return [pathlib.Path(file) for file in self._native.files(self._is_apart)]

    @functools.cached_property
    def metadata(self) -> dict:
        """What the first file says of its run: number, experiment, start and so on."""
        texts = (_native.event_metadata(path) for path in self._paths)
        return next((json.loads(text) for text in texts if text is not None), {})

    @property
    def run(self) -> "int | None":
        """Number of the run."""
        return self.metadata.get("run")

    @functools.cached_property
    def sources(self) -> "list[str]":
        """Names of the sources by their index. The sources of one readout unit have one name."""
        known = self.metadata.get("sources", [])
        count = int(self.fragments.source.max()) + 1 if len(self.fragments) else 0
        return known + [f"source{index}" for index in range(len(known), count)]

    @property
    def left_out(self) -> "dict[str, int]":
        """Further copies of events, and events whose headers are damaged."""
        duplicates, damaged = self._native.left_out()
        return {"duplicates": duplicates, "damaged": damaged}

    @property
    def apart(self) -> "Events":
        """The fragments that belong to no event, each as a record of its own. `fragments.apart` says why."""
        return Events(self._paths, self._native, apart=True)

    def changed(self) -> np.ndarray:
        """Reads all payloads. True for each fragment whose bytes changed on disk since they were stored."""
        numbers = np.arange(len(self.fragments)) if self._numbers is None else self._numbers
        return np.isin(numbers, self._native.changed(_bytes(numbers), self._is_apart))

    def __len__(self):
        return len(self.event)

    def __iter__(self) -> "Iterator[Event]":
        return (Event(self, index) for index in range(len(self)))

    def __getitem__(self, index) -> "Event | Events":
        if isinstance(index, (int, np.integer)):
            position = range(len(self))[index]
            return Event(self, position)
        return self._taken(np.arange(len(self))[index])

    def __repr__(self):
        incomplete = len(self) - int(self.complete.sum())
        return (f"<evb.Events: {len(self)} events, {incomplete} incomplete, {len(self.fragments)} fragments, "
                f"{int(self.fragments.length.sum(dtype='u8'))} bytes>")

    def awkward(self) -> Any:
        """An Awkward array: event, complete, time, source_time, and fragments with source, status, length, counter, mark and payload.
        What is unknown or missing is None. Payloads are views of the files."""
        from ._awkward import array

        return array(self)

    def decode(self, source: "str | int", decoder: Any, strict: bool = True) -> Any:
        """The payloads of a source, decoded: an Awkward array with an entry for each event, None where there is no payload.

        `decoder` is a type of NumPy, whose items fill the payload; or a `Decoder`, or a TOML file of one. A payload that does
        not fit raises EvbError, or is None if not `strict`."""
        from ._decode import decode

        return decode(self, source, decoder, strict)

    def to_arrow(self) -> Any:
        """A table of Arrow with a row for each fragment, as `evb events export --format arrow` writes it."""
        from ._export import arrow

        return arrow(self)

    def to_pandas(self, payload: bool = False) -> Any:
        """A table of pandas with a row for each fragment; with the payloads as bytes if wanted."""
        table = self.to_arrow() if payload else _without_payload(self)
        return table.to_pandas()

    def export(self, file: "str | os.PathLike", format: "str | None" = None, **options) -> None:
        """Writes the events as `parquet`, `arrow`, `hdf5`, `root`, or `dune` for the trigger records of DUNE in HDF5; by the ending of
        the file if no format is given. What belongs to no event is in `apart`, and is exported from there."""
        from ._export import export_events

        export_events(self, file, format, **options)

    def _taken(self, index):
        taken = Events.__new__(Events)
        taken._paths, taken._native, taken._is_apart = self._paths, self._native, self._is_apart
        first, count = self._bounds[index], self.fragment_count[index]
        bounds = np.concatenate([np.zeros(1, "i8"), np.cumsum(count)])
        fragments = _ranges(first, count)
        numbers = fragments if self._numbers is None else self._numbers[fragments]
        taken._set({name: column[index] for name, column in self._columns.items()}, bounds,
                   {name: column[fragments] for name, column in self.fragments._columns.items()}, numbers)
        return taken

    def _index_of(self, source):
        if isinstance(source, (int, np.integer)):
            return int(source)
        if source not in self.sources:
            raise _native.EvbError(f"there is no source {source}\nhint: one of: {', '.join(self.sources)}")
        return self.sources.index(source)

    def _name(self, index):
        return self.sources[index]

    @functools.cached_property
    def _content(self):
        """The bytes of all files, in place, and where the payload of each fragment begins in them."""
        mapping = self._mapping
        starts = np.array(mapping.starts, "i8")
        of_file = np.repeat(starts[self._columns["file"]], self.fragment_count) if len(starts) > 1 else 0
        return np.asarray(mapping), self.fragments._columns["offset"] + of_file

    @functools.cached_property
    def _mapping(self):
        return _native.Mapping(self.files)

    def _payload(self, fragment):
        content, starts = self._content
        start = starts[fragment].item()
        return content[start : start + self.fragments.length[fragment].item()]

    def _packed(self, fragments, first=0, end=None):
        """The bytes `payload[first:end]` of these fragments back to back."""
        numbers = fragments if self._numbers is None else self._numbers[fragments]
        return np.frombuffer(self._native.payloads(_bytes(numbers), first, end, self._is_apart), "u1")


def _bytes(numbers):
    """The numbers of fragments for the native part."""
    return np.ascontiguousarray(numbers, "u8").tobytes()


def _ranges(first, count):
    """The numbers first[0], first[0] + 1, .. of count[0], then those of first[1] and so on."""
    ends = np.cumsum(count)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(first - (ends - count), count)


def _without_payload(events):
    from ._export import arrow

    return arrow(events, payload=False)
