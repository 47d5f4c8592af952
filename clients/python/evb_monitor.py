"""Events of the run that goes on, from a service of evb, for programs that monitor it.

    import evb_monitor
    for event in evb_monitor.events("http://127.0.0.1:8080", token):
        print(event.number, event.size, [fragment.size for fragment in event.fragments])

The service sends a few events per second of each builder (`run.samples`). A program that takes longer misses some, and the run
does not wait for it. Only the standard library is needed.

As a program it prints a line for each event: `python3 evb_monitor.py http://127.0.0.1:8080 --events 10`, with the token in the
environment variable EVB_HTTP_TOKEN.
"""

import argparse
import dataclasses
import json
import os
import sys
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
    """Gives events for as long as the service goes on. `timeout` is the longest silence, in seconds: between runs there are no
    events, so a program that waits for the next run gives a long one."""
    request = urllib.request.Request(address.rstrip("/") + "/api/samples", headers={"Authorization": f"Bearer {token}"})
    try:
        answer = urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        raise Refused(_reason(error)) from None
    with answer:
        for line in answer:
            yield _event(json.loads(line))


def _reason(error):
    try:
        return json.load(error)["error"]
    except (ValueError, KeyError):
        return str(error)


def _event(told):
    fragments = [
        Fragment(one["source"], one["state"], one["size"], int(one["checksum"], 16), bytes.fromhex(one["bytes"]))
        for one in told["fragments"]
    ]
    return Event(told["run"], told["event"], told["complete"], told["size"], fragments)


def main():
    parser = argparse.ArgumentParser(description="Prints events of the run that goes on.")
    parser.add_argument("address", help="address of the service, such as http://127.0.0.1:8080")
    parser.add_argument("--events", type=int, help="end after this many")
    arguments = parser.parse_args()
    token = os.environ.get("EVB_HTTP_TOKEN", "")
    try:
        for count, event in enumerate(events(arguments.address, token), start=1):
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
