"""A filter of evb in Python. One line is enough:

    import evb_filter; evb_filter.run(lambda event: len(event[3]) > 1000)

The function is called with each event. It returns True to accept, False to reject, or the name of a stream. An event has
its `number`, `complete`, and `fragments`; `event[source]` are the bytes of a fragment. Python 3.8 or later, and nothing
else. docs/filters.md has more.
"""

import os
import struct
import sys
import time
from collections import namedtuple

GOOD, CORRUPTED, MISSING, OVERSIZED, MISMATCHED = range(5)

_HELLO, _EVENTS, _READY, _VERDICTS = 1, 2, 16, 17
_MAGIC, _VERSION, _MOST_VERDICTS = b"EVBF", 1, 4096

Fragment = namedtuple("Fragment", "source status bytes")


class Event:
    """An event: its number, whether all fragments are there and good, and the fragments."""

    def __init__(self, number, complete, fragments):
        self.number, self.complete, self.fragments = number, complete, fragments

    def __getitem__(self, source):
        """The bytes of the fragment of a source; none if there is no such fragment."""
        return next((found.bytes for found in self.fragments if found.source == source), b"")

    def __len__(self):
        """The bytes of all fragments together."""
        return sum(len(found.bytes) for found in self.fragments)


def run(decide):
    """Decides about events until the builder ends."""
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # What a filter prints must not come between its verdicts.
    os.dup2(2, 1)
    hello = _read(source)
    if hello is None:
        return
    streams = _streams(hello)
    _send(sink, _READY, struct.pack("<4sHH", _MAGIC, _VERSION, 0))
    while (message := _read(source)) is not None:
        kind, body = message
        if kind != _EVENTS:
            sys.exit("evb filter: the builder says what is no event")
        _decide_all(decide, body, streams, sink)


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


def _decide_all(decide, body, streams, sink):
    verdicts, sent = [], time.monotonic()
    for event in _events(body):
        verdicts.append(_verdict(event.number, decide(event), streams))
        # Verdicts go early when events take long: the builder sees that work goes on.
        if len(verdicts) == _MOST_VERDICTS or time.monotonic() - sent > 0.1:
            _send_verdicts(sink, verdicts)
            verdicts, sent = [], time.monotonic()
    _send_verdicts(sink, verdicts)


def _verdict(number, decision, streams):
    if isinstance(decision, str) and decision not in streams:
        sys.exit(f"evb filter: there is no stream {decision!r}; there are {', '.join(streams)}")
    stream = streams[decision] if isinstance(decision, str) else 0
    return struct.pack("<QBBHI", number, bool(decision), 0, stream, 0)


def _events(body):
    (count,) = struct.unpack_from("<I", body, 0)
    at = 8
    for _ in range(count):
        number, fragments, complete, length = struct.unpack_from("<QHHI", body, at)
        yield Event(number, bool(complete & 1), list(_fragments(body, at + 16, fragments)))
        at += 16 + length


def _fragments(body, at, count):
    for _ in range(count):
        source, status, _, length = struct.unpack_from("<HBBI", body, at)
        yield Fragment(source, status, body[at + 8 : at + 8 + length])
        at += 8 + (length + 7) // 8 * 8


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
