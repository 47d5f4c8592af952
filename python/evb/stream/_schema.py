"""What the messages of Kafka contain. The flatbuffers are those of the European Spallation Source; `ess-streaming-data-types` makes
them."""

import collections
import json
import struct
import time
from typing import Any, Iterator, NamedTuple, Sequence

import numpy as np

from .. import _native
from ..events._decode import parts_of
from ._event import Event, Fragment
from ._histogram import Histogram

# The numbers of hits in `ev44` have 32 bits.
INT32 = np.iinfo(np.int32)


class Message(NamedTuple):
    """A message: those of one key stay in order. A value that is not bytes is a part of one, which its schema joins with others."""

    key: "bytes | None"
    value: "bytes | Hits"


class Raw:
    """One message for an event: 4 bytes with the length of the header, little-endian, the header, and the payloads back to back.
    `unpack_raw` reads it."""

    def messages(self, event: Event) -> "list[Message]":
        """The messages of an event."""
        header = event.header()
        return [Message(None, b"".join([struct.pack("<I", len(header)), header, *event.payloads()]))]


def unpack_raw(message: bytes) -> "tuple[dict, list[memoryview]]":
    """The header of a raw message, and the payload of each fragment; EvbError if it is none."""
    view = memoryview(message)
    try:
        end = 4 + struct.unpack_from("<I", view)[0]
        header = json.loads(bytes(view[4:end]))
        payloads = []
        for fragment in header["fragments"]:
            payloads.append(view[end : end + fragment["bytes"]])
            end += fragment["bytes"]
    except (struct.error, ValueError, KeyError, TypeError) as error:
        raise _native.EvbError(f"this is no raw message of an event: {error!r}") from None
    if end != len(view):
        raise _native.EvbError(f"a raw message of {len(view)} bytes says that it has {end}")
    return header, payloads


class _Decoded:
    """A schema whose messages are the decoded payloads of sources: one message for each. A message has the name of the readout unit,
    such as `ru0`; where a unit reads several sources, that of the source, such as `ru0/3`."""

    def __init__(self, decoder, sources):
        self._parts = parts_of(decoder)
        self._sources = None if sources is None else set(sources)

    def messages(self, event: Event) -> "list[Message]":
        """The messages of an event; EvbError if a payload does not fit the decoder."""
        shared = collections.Counter(one.source for one in event.fragments)
        messages = []
        for one in self._wanted(event):
            name = one.source if shared[one.source] == 1 else f"{one.source}/{one.index}"
            messages.append(Message(name.encode(), self._message(event, one, name, self._items(event, one))))
        return messages

    def _wanted(self, event) -> "Iterator[Fragment]":
        wanted = self._sources
        return (one for one in event.fragments if one.payload is not None and (wanted is None or one.source in wanted or one.index in wanted))

    def _items(self, event, fragment):
        items = self._parts.items_of(fragment.payload)
        if items is None:
            raise _native.EvbError(
                f"event {event.number}, source {fragment.source}: a payload of {len(fragment.payload)} bytes does not fit the decoder\n"
                "hint: name the sources that have these payloads, or let such events be left out"
            )
        return items


class Ev44(_Decoded):
    """Neutron events, `ev44`: a message for each source of an event, with the numbers of its hits.

        Ev44(Decoder(items=[("pixel", "<u4"), ("time", "<u4")]), id="pixel", time="time")

    `id` and `time` are fields of the items. `tick_ns` is the unit of the time in nanoseconds. The number of the
    message is that of the event. The reference time is `reference` of the event: `triggered`, or
    `source_time` where the clock of the sources counts nanoseconds since 1970.

    With `events` a message has the hits of so many events of a source, each behind its reference time, and the number of the first one:
    small events are much faster so. What is gathered is sent when it is complete, when the stream has sent all that is stored, and
    by `flush`."""

    def __init__(self, decoder: Any, id: str = "id", time: str = "time", sources: "list | None" = None, tick_ns: float = 1,
                 reference: str = "triggered", events: int = 1):
        super().__init__(decoder, sources)
        self._id, self._time, self._tick, self._reference = id, time, tick_ns, reference
        fields = self._parts.items.names or ()
        if missing := {id, time} - set(fields):
            raise _native.EvbError(f"the items of the decoder have no field {min(missing)!r}\nhint: they have: {', '.join(fields) or 'none'}")
        self.events = events
        if events < 1:
            raise _native.EvbError(f"a message has the hits of {events} events\nhint: at least 1")
        if reference not in ("triggered", "source_time"):
            raise _native.EvbError(f"{reference!r} is no time of an event\nhint: triggered or source_time")

    def _message(self, event, fragment, name, items):
        reference = getattr(event, self._reference)
        if reference is None:
            raise _native.EvbError(f"event {event.number} has no {self._reference} time, and ev44 needs one")
        times = items[self._time]
        if self._tick != 1:
            times = np.rint(times * np.float64(self._tick))
        ids = items[self._id]
        for values, field in ((ids, self._id), (times, self._time)):
            if len(values) and not (INT32.min <= values.min() and values.max() <= INT32.max):
                raise _native.EvbError(f"event {event.number}, source {fragment.source}: a {field} is too large for ev44, which has 32 bits")
        hits = Hits(event.number, reference, times, ids)
        return _ev44(name, [hits]) if self.events == 1 else hits

    def joined(self, key: bytes, parts: "Sequence[Hits]") -> Message:
        """The message with the hits of several events of one source."""
        return Message(key, _ev44(key.decode(), parts))


class Hits(NamedTuple):
    """The hits of a source in an event."""

    number: int
    reference: int
    times: np.ndarray
    ids: np.ndarray


def _ev44(name, parts):
    from streaming_data_types import serialise_ev44

    firsts = np.cumsum([0] + [len(part.ids) for part in parts[:-1]])
    times, ids = (np.concatenate([part[field] for part in parts]) for field in (2, 3))
    return serialise_ev44(name, parts[0].number, [part.reference for part in parts], firsts, times, ids)


class Ad00(_Decoded):
    """Images and other arrays, `ad00`: a message for each source of an event, with the items of the decoder as they are, or in a
    `shape` such as (512, 512). The number of the message is that of the event, its time that of the trigger; 0 if unknown."""

    def __init__(self, decoder: Any = "u1", shape: "tuple[int, ...] | None" = None, sources: "list | None" = None):
        super().__init__(decoder, sources)
        self._shape = shape
        if self._parts.items.kind not in "iuf" or self._parts.items.itemsize > 8:
            raise _native.EvbError(f"ad00 has no items of type {self._parts.items}\nhint: one number of 1 to 8 bytes, such as <u2")

    def _message(self, event, fragment, name, items):
        from streaming_data_types import serialise_ad00

        if self._shape is not None:
            if len(items) != np.prod(self._shape):
                raise _native.EvbError(f"event {event.number}, source {fragment.source}: {len(items)} items are no array of {self._shape}")
            items = items.reshape(self._shape)
        data = items.astype(items.dtype.newbyteorder("="), copy=False)
        return serialise_ad00(name, event.number, event.triggered or 0, data)


def da00(name: str, histogram: Histogram) -> Message:
    """A histogram as `da00`: the variable `signal`, and one for the edges of each axis."""
    from streaming_data_types import serialise_da00
    from streaming_data_types.dataarray_da00 import Variable

    variables = [Variable("signal", histogram.counts, axes=[axis for axis, _ in histogram.axes])]
    variables += [Variable(axis, edges, axes=[axis]) for axis, edges in histogram.axes]
    return Message(name.encode(), serialise_da00(name, time.time_ns(), variables))
