"""A filter of evb in Python. One line is enough:

    import evb_filter; evb_filter.run(lambda event: len(event[3]) > 1000)

The function is called with each event. It returns True to accept, False to reject, or the name of a stream. An event has
its `number`, `complete`, and `fragments`; `event[source]` are the bytes of a fragment. They are copied when they are asked
for; `event.view(source)` is a memoryview that copies nothing, and ends when the function returns. Python 3.8 or later,
and nothing else. docs/guides/filters.md has more.
"""

import mmap
import os
import struct
import sys
import time

GOOD, CORRUPTED, MISSING, OVERSIZED, MISMATCHED = range(5)

_HELLO, _EVENTS, _PLACES, _READY, _VERDICTS = 1, 2, 3, 16, 17
_MAGIC, _VERSION, _MOST_VERDICTS, _IN_MEMORY, _FIRST = b"EVBF", 1, 4096, 1, 64
_EVENT, _FRAGMENT = struct.Struct("<QHHI").unpack_from, struct.Struct("<HBBI").unpack_from


class _Content:
    """The bytes of an event, until the decision about it."""

    __slots__ = ("number", "view", "given")

    def __init__(self, number, view):
        self.number, self.view, self.given = number, view, []

    def part(self, start, length):
        if self.view is None:
            raise ValueError(f"event {self.number} is decided: take the bytes of its fragments before that")
        return self.view[start : start + length]

    def end(self):
        self.view = None
        for view in self.given:
            try:
                view.release()
            except BufferError:  # An object of the filter still uses it, and will see bytes of other events.
                pass


class Fragment:
    """A part of an event: its `source`, its `status`, and its `bytes`. It unpacks to these three."""

    __slots__ = ("source", "status", "length", "_content", "_start", "_bytes")

    def __init__(self, source, status, content, start, length):
        self.source, self.status, self.length = source, status, length
        self._content, self._start, self._bytes = content, start, None

    @property
    def bytes(self):
        """The bytes. They are copied when this is first asked."""
        if self._bytes is None:
            self._bytes = bytes(self._content.part(self._start, self.length))
        return self._bytes

    def view(self):
        """The bytes without a copy, for as long as the filter decides about the event."""
        view = self._content.part(self._start, self.length)
        self._content.given.append(view)
        return view

    def __iter__(self):
        return iter((self.source, self.status, self.bytes))

    def __getitem__(self, index):
        return (self.source, self.status, self.bytes)[index]

    def __len__(self):
        return 3

    def __repr__(self):
        return f"Fragment(source={self.source}, status={self.status}, length={self.length})"


class Event:
    """An event: its number, whether all fragments are there and good, and the fragments."""

    def __init__(self, number, complete, fragments):
        self.number, self.complete, self.fragments = number, complete, fragments

    def __getitem__(self, source):
        """The bytes of the fragment of a source, or None without such a fragment."""
        return next((found.bytes for found in self.fragments if found.source == source), b"")

    def view(self, source):
        """The bytes of the fragment of a source without a copy, for as long as the filter decides about the event."""
        return next((found.view() for found in self.fragments if found.source == source), memoryview(b""))

    def __len__(self):
        """The bytes of all fragments together."""
        return sum(found.length for found in self.fragments)


def run(decide):
    """Decides about events until the builder ends."""
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # What a filter prints must not come between its verdicts.
    os.dup2(2, 1)
    hello = _read(source)
    if hello is None:
        return
    streams, area = _streams(hello), _map(hello[1])
    _send(sink, _READY, struct.pack("<4sHH", _MAGIC, _VERSION, 0 if area is None else _IN_MEMORY))
    while (message := _read(source)) is not None:
        kind, body = message
        if kind == _EVENTS:
            _decide_all(decide, _events(memoryview(body)), streams, sink)
        elif kind == _PLACES and area is not None:
            _decide_all(decide, _events_in(area, body), streams, sink)
        else:
            sys.exit("evb filter: the builder has sent an invalid event")


def _streams(hello):
    """The index of each stream by name."""
    kind, body = hello
    if kind != _HELLO or len(body) < 24 or body[:4] != _MAGIC:
        sys.exit("evb filter: no builder is there")
    version, count = struct.unpack_from("<HH", body, 4)
    if version != _VERSION:
        sys.exit(f"evb filter: the builder speaks version {version}, and this module {_VERSION}")
    streams, at = {}, 24
    for index in range(count):
        (length,) = struct.unpack_from("<H", body, at)
        streams[body[at + 2 : at + 2 + length].decode()] = index
        at += 2 + length
    return streams


def _map(hello):
    """The memory in which the builder puts events; or None if it has none, or if the parent of this process closed it."""
    (descriptor,) = struct.unpack_from("<I", hello, 20)
    if descriptor == 0:
        return None
    try:
        area = memoryview(mmap.mmap(descriptor, 0, prot=mmap.PROT_READ))
    except (OSError, ValueError, OverflowError):
        return None
    # Another file may have the number of a closed one.
    return area if len(area) >= _FIRST and area[:24] == hello[:24] else None


def _decide_all(decide, events, streams, sink):
    verdicts, sent = [], time.monotonic()
    for content, event in events:
        verdicts.append(_verdict(event.number, decide(event), streams))
        content.end()
        # Verdicts go early when events take long: the builder sees that work goes on.
        if len(verdicts) == _MOST_VERDICTS or time.monotonic() - sent > 0.1:
            _send_verdicts(sink, verdicts)
            verdicts, sent = [], time.monotonic()
    _send_verdicts(sink, verdicts)


def _verdict(number, decision, streams):
    if isinstance(decision, str) and decision not in streams:
        sys.exit(f"evb filter: unknown stream {decision!r}; the streams are {', '.join(streams)}")
    stream = streams[decision] if isinstance(decision, str) else 0
    return struct.pack("<QBBHI", number, bool(decision), 0, stream, 0)


def _events(body):
    (count,) = struct.unpack_from("<I", body, 0)
    at = 8
    for _ in range(count):
        content, event, length = _event(body[at:])
        yield content, event
        at += length


def _events_in(area, body):
    (count,) = struct.unpack_from("<I", body, 0)
    if len(body) != 8 + 16 * count:
        sys.exit("evb filter: the builder has sent an invalid event")
    for start, length in struct.iter_unpack("<QQ", body[8:]):
        if start < _FIRST or start % 8 or start + length > len(area):
            sys.exit("evb filter: the builder names a place outside of its memory")
        content, event, _ = _event(area[start : start + length])
        yield content, event


def _event(view):
    """The event at the beginning of these bytes, and its length."""
    try:
        number, count, complete, length = _EVENT(view, 0)
        content, at, end = _Content(number, view), 16, 16 + length
        fragments = []
        for _ in range(count):
            source, status, _, length = _FRAGMENT(view, at)
            fragments.append(Fragment(source, status, content, at + 8, length))
            at += 8 + (length + 7 & ~7)
    except struct.error:
        at, end = 1, 0
    if not at <= end <= len(view):
        sys.exit("evb filter: an event of the builder does not end")
    return content, Event(number, bool(complete & 1), fragments), end


def _read(source):
    head = source.read(8)
    if len(head) < 8:
        return None
    length, kind = struct.unpack("<II", head)
    body = source.read(length)
    return (kind, body) if len(body) == length else None


def _send_verdicts(sink, verdicts):
    if verdicts:
        _send(sink, _VERDICTS, struct.pack("<Q", len(verdicts)) + b"".join(verdicts))


def _send(sink, kind, body):
    sink.write(struct.pack("<II", len(body), kind) + body)
    sink.flush()
