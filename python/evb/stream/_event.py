"""An event as streams send it: the same from an event file, and from the samples of a run."""

import json
import time
from typing import Any, NamedTuple

import numpy as np

from .. import monitor
from ..events import Event as StoredEvent
from ..events import Status

STATUS = [status.name.lower() for status in Status]


class Fragment(NamedTuple):
    """The fragment of a source."""

    source: str
    """Name of its source, such as `ru0`."""
    index: int
    """Index of its source: the sources of one readout unit have one name."""
    status: str
    """`good`, `corrupted`, `missing`, `oversized` or `mismatched`."""
    counter: "int | None"
    """The number that its source gave it."""
    mark: "int | None"
    """Its mark."""
    size: int
    """Bytes of the payload. A sample of a very large event has fewer."""
    payload: Any
    """A buffer of its bytes, not copied; None if it is missing."""


class Event(NamedTuple):
    """An event on its way out."""

    run: "int | None"
    """Number of the run."""
    number: int
    """Number of the event."""
    complete: bool
    """True if every fragment was there and good."""
    triggered: "int | None"
    """Time of the trigger in nanoseconds since 1970-01-01 UTC. Samples have the time at which they came."""
    source_time: "int | None"
    """Time by the clock of the sources, in their unit."""
    fragments: "list[Fragment]"
    """In the order of their sources."""

    def header(self) -> bytes:
        """The event without its payloads, as one object of JSON. `bytes` are those of the payload that goes along."""
        fragments = [
            {"source": one.source, "index": one.index, "status": one.status, "counter": one.counter, "mark": one.mark, "size": one.size,
             "bytes": 0 if one.payload is None else len(one.payload)}
            for one in self.fragments
        ]
        return json.dumps({**self._asdict(), "fragments": fragments}, separators=(",", ":")).encode()

    def payloads(self) -> list:
        """A buffer for each fragment, empty where it is missing."""
        return [b"" if one.payload is None else one.payload for one in self.fragments]


def outgoing(event: "Event | StoredEvent | monitor.Event") -> Event:
    """The event to send, of an event of a file or of a sample."""
    if isinstance(event, Event):
        return event
    return _of_sample(event) if isinstance(event, monitor.Event) else _of_stored(event)


def _of_sample(event):
    fragments = [
        Fragment(one.source, index, one.state, one.counter, one.mark, one.size, None if one.state == "missing" else one.payload)
        for index, one in enumerate(event.fragments)
    ]
    return Event(event.run, event.number, event.complete, time.time_ns(), None, fragments)


def _of_stored(event):
    fragments = [
        Fragment(one.source, one.index, STATUS[one.status], one.counter, one.mark, len(one), one.payload) for one in event.fragments
    ]
    events, index = event._events, event._index
    return Event(events.run, event.number, event.complete, event.triggered, events.source_time[index].item() or None, fragments)


def of_columns(events: Any, order: np.ndarray, metadata: "list[dict]") -> "list[Event]":
    """These events of the columns, in this order; `metadata` has those of each file."""
    content, starts = events._content
    content, columns = memoryview(content), events.fragments._columns
    heads = zip(order.tolist(), *(events._columns[name][order].tolist() for name in ("file", "event", "complete", "triggered", "source_time")))
    listed = []
    for index, file, number, complete, triggered, source_time in heads:
        part = slice(*events._bounds[index : index + 2].tolist())
        names = metadata[file].get("sources", [])
        rows = zip(starts[part].tolist(), *(columns[name][part].tolist() for name in ("source", "status", "length", "counter", "mark", "known")))
        fragments = [
            Fragment(names[source] if source < len(names) else f"source{source}", source, STATUS[status], counter if known & 1 else None,
                     mark if known & 2 else None, length, None if status == Status.MISSING else content[start : start + length])
            for start, source, status, length, counter, mark, known in rows
        ]
        listed.append(Event(metadata[file].get("run"), number, complete, triggered or None, source_time or None, fragments))
    return listed
