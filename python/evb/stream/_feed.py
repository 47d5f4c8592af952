"""The events of files in the order of storing, and up to where each file is delivered."""

import collections
import json
import os
import pathlib
from typing import Any, Callable, Iterable, Iterator

import numpy as np

from .. import _native
from ..events import follow
from ..events._events import paths_of
from ._event import Event, of_columns

# Events that are made for sending at once.
BLOCK = 1000
# Bytes of the head of an event, and of the head of each of its fragments, as in the event file.
EVENT_HEAD, FRAGMENT_HEAD = 32, 16


class Feed:
    """The events that were stored behind the positions, also while files grow. FileNotFoundError if a file is not there and may not
    come later."""

    def __init__(self, files: "str | os.PathLike | Iterable[str | os.PathLike]", positions: "dict[str, int]", may_come: bool):
        given = [files] if isinstance(files, (str, os.PathLike)) else list(files)
        paths = list(map(os.path.abspath, given))
        absent = [] if may_come else [path for path in paths_of(paths) if not os.path.isfile(path)]
        if absent:
            raise FileNotFoundError(f"no event file: {absent[0]}")
        self._follower = follow(paths, positions)
        self._metadata = {}
        self.position = Position(positions)

    def read(self) -> "Iterator[tuple[Event, Callable[[], None]]]":
        """The events that were stored since the last call. Call what comes with an event when it is delivered."""
        events = self._follower.read()
        files, ends = list(map(str, events.files)), self._follower.positions
        metadata = [self._of_file(file) for file in files]
        order = _sending_order(events, [head.get("run", 0) for head in metadata])
        behind = _behind(events, order, [ends[file] for file in files])
        file_of = events._columns["file"][order].tolist()
        for first in range(0, len(order), BLOCK):
            block = of_columns(events, order[first : first + BLOCK], metadata)
            for place, event in enumerate(block, first):
                yield event, self.position.begin(files[file_of[place]], behind[place])

    def _of_file(self, file):
        if file not in self._metadata:
            self._metadata[file] = json.loads(_native.event_metadata(file) or "{}")
        return self._metadata[file]


def _starts(events):
    """Where the record of each event begins in its file."""
    first = np.minimum.reduceat(events.fragments._columns["offset"], events._bounds[:-1]) if len(events) else np.zeros(0, "i8")
    return first - EVENT_HEAD - FRAGMENT_HEAD * events.fragment_count


def _sending_order(events, runs):
    """Events of a file in the order of storing, and those of several files together by their numbers as far as that allows."""
    file, stored = events._columns["file"], np.lexsort((_starts(events), events._columns["file"]))
    highest = np.zeros(len(events), "u8")
    for index in range(len(runs)):
        of_file = stored[file[stored] == index]
        highest[of_file] = np.maximum.accumulate(events.event[of_file])
    run = np.array(runs or [0], "u8")[file]
    return stored[np.lexsort((highest[stored], run[stored]))]


def _behind(events, order, ends):
    """For each event in this order the position behind it: the beginning of the next one of its file, or where reading has ended."""
    starts, files = _starts(events)[order].tolist(), events._columns["file"][order].tolist()
    following, behind = list(ends), [0] * len(order)
    for place in reversed(range(len(order))):
        behind[place], following[files[place]] = following[files[place]], starts[place]
    return behind


class Position:
    """Up to where each file is delivered without a gap: before the first event that is not."""

    def __init__(self, files: "dict[str, int]"):
        self.files = dict(files)
        self._on_the_way: "dict[str, collections.deque]" = collections.defaultdict(collections.deque)
        self.on_the_way = 0
        """Events behind the position that have begun."""

    def begin(self, file: str, behind: int) -> "Callable[[], None]":
        """An event of this file is on its way. Call the result when it is delivered."""
        entry = [behind, False]
        entries = self._on_the_way[file]
        entries.append(entry)
        self.on_the_way += 1

        def delivered():
            entry[1] = True
            while entries and entries[0][1]:
                self.files[file] = entries.popleft()[0]
                self.on_the_way -= 1

        return delivered


class State:
    """The file that keeps the position between two starts."""

    FORMAT = 1

    def __init__(self, path: "str | os.PathLike", place: str):
        self.path, self.place = pathlib.Path(path), place

    def load(self) -> "dict[str, int]":
        """The kept position; none if there is no file yet."""
        try:
            kept = json.loads(self.path.read_text())
            place, files = kept["to"], {str(file): int(bytes) for file, bytes in kept["files"].items()}
            is_known = kept["format"] == self.FORMAT
        except FileNotFoundError:
            return {}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _native.EvbError(f"{self.path}: this is no position of a stream: {error!r}\nhint: another file name begins anew") from None
        if not is_known:
            raise _native.EvbError(f"{self.path}: this version does not know format {kept['format']} of positions")
        if place != self.place:
            raise _native.EvbError(f"{self.path}: the position is that of the stream to {place}\n"
                                   "hint: each stream has a file of its own; a place that only has another name is changed in it")
        return files

    def save(self, files: "dict[str, Any]") -> None:
        """Keeps the position: the file is always whole."""
        part = self.path.with_name(self.path.name + ".part")
        with part.open("w") as file:
            file.write(json.dumps({"format": self.FORMAT, "to": self.place, "files": files}, indent=1) + "\n")
            file.flush()
            os.fsync(file.fileno())
        part.replace(self.path)
