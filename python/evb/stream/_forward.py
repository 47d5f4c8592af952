"""Sends the events of files, and keeps the position."""

import os
import time
from typing import Callable, Iterable

from ._feed import Feed, State
from ._sink import STEP, Counts, Sink, Stopped

# Events behind the position that are known at once.
MOST_ON_THE_WAY = 100_000
# The position is kept, and the counts are told, this often, in seconds.
EVERY = 1.0


def forward(files: "str | os.PathLike | Iterable[str | os.PathLike]", sink: Sink, follow: bool = False,
            state: "str | os.PathLike | None" = None, watch: "Callable[[Counts], None] | None" = None) -> Counts:
    """Sends the events of these files: those that are stored, or with `follow` also those that come, until `sink.stop()`. Files are as
    in `evb.events.follow`.

    `state` is a file that keeps up to where each file is delivered. The next call continues there: each event arrives at least once,
    and what was not acknowledged before an interruption comes again. `watch` gets the counts every second. EvbError if the sink
    has no progress for its timeout or an event is refused; the position is kept then, too."""
    work = _Work(files, sink, follow, state, watch)
    try:
        work.send_stored()
        while follow and not sink.is_stopping:
            sink.poll(STEP)
            if not sink.counts.waiting:
                time.sleep(STEP)
            work.send_stored()
        sink.flush()
    except Stopped:
        sink.drain()
    finally:
        work.keep()
    return sink.counts


class _Work:
    """A sink with what is sent to it."""

    def __init__(self, files, sink, follow, state, watch):
        self.sink, self.watch = sink, watch
        self.state = None if state is None else State(state, sink.place)
        self.feed = Feed(files, self.state.load() if self.state else {}, may_come=follow)
        self.told = time.monotonic()

    def send_stored(self):
        """Sends what was stored since the last call."""
        for event, delivered in self.feed.read():
            self.make_room()
            self.sink.send(event, delivered)
            self.tell()
        self.sink._send_gathered()
        self.tell()

    def make_room(self):
        """Waits while too many events are on their way."""
        if self.sink.is_stopping:
            raise Stopped
        if self.feed.position.on_the_way > MOST_ON_THE_WAY:
            self.sink._send_gathered()
        while self.feed.position.on_the_way > MOST_ON_THE_WAY:
            self.sink._wait(STEP)

    def tell(self):
        if time.monotonic() - self.told >= EVERY:
            self.told = time.monotonic()
            self.keep()
            if self.watch:
                self.watch(self.sink.counts)

    def keep(self):
        if self.state:
            self.state.save(self.feed.position.files)
