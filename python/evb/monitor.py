"""Events of the run that goes on, from a service of evb, for programs that monitor it.

    from evb import monitor  # or `import evb_monitor`, where this file is beside the program under that name
    for event in monitor.events("http://127.0.0.1:8080", token):
        print(event.number, event.size, [fragment.size for fragment in event.fragments])

The service sends a few events per second of each builder (`run.samples`). A program that takes longer misses some, and the run
does not wait for it. Only the standard library is needed.

On the machine of the service, `events_in("/dev/shm/evb-samples")` reads them from shared memory, if the service was started with
`--samples /dev/shm/evb-samples`. That needs no token: the system says who may read the file.

As a program it prints a line for each event: `python3 evb_monitor.py http://127.0.0.1:8080 --events 10`, with the token in the
environment variable EVB_HTTP_TOKEN, or `python3 evb_monitor.py /dev/shm/evb-samples`.
"""

import argparse
import dataclasses
import json
import os
import struct
import sys
import time
import urllib.error
import urllib.request


@dataclasses.dataclass(frozen=True)
class Fragment:
    """The fragment of one source."""

    source: str
    """Name of the source, such as `ru0`."""
    state: str
    """`good`, `missing`, `corrupted`, `oversized` or `mismatched`."""
    size: int
    """Length of the payload in bytes."""
    checksum: int
    """CRC-32C of the payload."""
    payload: bytes
    """The payload; its beginning only if the event is very large."""
    counter: "int | None" = None
    """The number that the source gave it, if it numbers its fragments."""
    mark: "int | None" = None
    """The mark, if it carries one."""


@dataclasses.dataclass(frozen=True)
class Event:
    """A copy of a built event."""

    run: int
    """Number of the run."""
    number: int
    """Number of the event."""
    complete: bool
    """True if every fragment is there and good."""
    size: int
    """Bytes of all payloads."""
    fragments: list
    """The fragments in the order of their sources."""


class Refused(Exception):
    """The service refused the request; the text says why."""


def events(address, token, timeout=60):
    """Yields events for as long as the service runs. `timeout` is the longest silence, in seconds: between runs there are no
    events, so a program that waits for the next run gives a long one."""
    request = urllib.request.Request(address.rstrip("/") + "/api/samples", headers={"Authorization": f"Bearer {token}"})
    try:
        answer = urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        raise Refused(_reason(error)) from None
    with answer:
        for line in answer:
            yield event_from(json.loads(line))


def events_in(path, timeout=60):
    """Gives events from a file of shared memory, from the next one on. `timeout` is the longest silence, in seconds; TimeoutError
    ends a longer one. The file may come later, and a service that starts again makes another one."""
    silent_since = time.monotonic()
    file = None
    while True:
        if file is None:
            file = _Shared.open(path)
        elif sample := file.next():
            silent_since = time.monotonic()
            yield event_from(sample)
            continue
        elif not file.is_at(path):
            file.close()
            file = None
            continue
        if time.monotonic() - silent_since > timeout:
            raise TimeoutError(f"no event in {path} for {timeout} s")
        time.sleep(0.01)


class _Shared:
    """A ring of samples: `samples.rs` of the service describes it."""

    HEAD = struct.Struct("<8sIIQQ")
    PLACE = struct.Struct("<QI4x")
    FIRST = 4096

    def __init__(self, file):
        self.file = file
        self.seen = None

    @classmethod
    def open(cls, path):
        """The file, or None before there is one."""
        try:
            return cls(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        except FileNotFoundError:
            return None

    def close(self):
        os.close(self.file)

    def is_at(self, path):
        """False if the service has ended or has made another file."""
        try:
            return os.stat(path).st_ino == os.fstat(self.file).st_ino
        except FileNotFoundError:
            return False

    def next(self):
        """The next sample that is still there, or None."""
        head = os.pread(self.file, self.HEAD.size, 0)
        if len(head) < self.HEAD.size or head[:8] != b"EVBSAMPL":
            return None
        _, layout, places, place_bytes, written = self.HEAD.unpack(head)
        if layout != 1:
            raise ValueError(f"this client does not know layout {layout} of samples")
        if self.seen is None:
            self.seen = written
        self.seen = max(self.seen, written - places)
        while self.seen < written:
            self.seen += 1
            at = self.FIRST + self.seen % places * place_bytes
            number, length = self.PLACE.unpack(os.pread(self.file, self.PLACE.size, at))
            text = os.pread(self.file, min(length, place_bytes), at + self.PLACE.size)
            after, _ = self.PLACE.unpack(os.pread(self.file, self.PLACE.size, at))
            # Else the service was faster: the sample has been overwritten.
            if number == after == self.seen:
                return json.loads(text)
        return None


def values(events, source, dtype):
    """The numbers in the payloads of a source, of all these events together: an array of NumPy of this type, to fill histograms with.
    Bytes at the end of a payload that are no whole number are left out."""
    import numpy

    dtype = numpy.dtype(dtype)
    payloads = [fragment.payload for event in events for fragment in event.fragments if fragment.source == source]
    return numpy.frombuffer(b"".join(payload[: len(payload) // dtype.itemsize * dtype.itemsize] for payload in payloads), dtype)


def _reason(error):
    try:
        return json.load(error)["error"]
    except (ValueError, KeyError):
        return str(error)


def event_from(sample):
    """The event of a sample of JSON. A run in this process has no number, 0."""
    fragments = [
        Fragment(one["source"], one["state"], one["size"], int(one["checksum"], 16), bytes.fromhex(one["bytes"]),
                 one.get("counter"), one.get("mark"))
        for one in sample["fragments"]
    ]
    size = sum(one["size"] for one in sample["fragments"])
    return Event(sample.get("run", 0), sample["event"], sample["complete"], size, fragments)


def main():
    parser = argparse.ArgumentParser(description="Prints events of the run that goes on.")
    parser.add_argument("place", help="address of the service, such as http://127.0.0.1:8080, or a file of shared memory")
    parser.add_argument("--events", type=int, help="end after this many")
    arguments = parser.parse_args()
    is_address = arguments.place.startswith(("http://", "https://"))
    token = os.environ.get("EVB_HTTP_TOKEN", "")
    try:
        all_events = events(arguments.place, token) if is_address else events_in(arguments.place)
        for count, event in enumerate(all_events, start=1):
            sizes = " ".join(f"{one.source}:{one.size}" for one in event.fragments)
            state = "complete" if event.complete else "incomplete"
            print(f"run {event.run} event {event.number} {state} {event.size} B {sizes}", flush=True)
            if count == arguments.events:
                return 0
    except (Refused, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
