"""What the sinks of all kinds share: counts, waiting with a limit, and the end."""

import contextlib
import time
from typing import Any, Callable, NamedTuple

from .. import _native
from ._event import Event, outgoing
from ._histogram import Histogram

# Longest time without any progress of a sink, in seconds.
TIMEOUT = 300.0
# What is on its way at the end has so long to arrive, in seconds.
PATIENCE = 10.0
# A wait looks for the order to stop this often, in seconds.
STEP = 0.1


class Counts(NamedTuple):
    """The events and histograms of a sink so far."""

    sent: int
    """Given to the sink."""
    delivered: "int | None"
    """Acknowledged by the broker; None where nobody acknowledges, so that it cannot be told."""
    waiting: int
    """Not yet acknowledged; where nobody acknowledges, not yet written to a connection."""
    failed: int
    """Refused by the broker, or not what the schema needs."""
    empty: int
    """Without a payload of the wanted sources: there was nothing to send."""

    def __str__(self):
        delivered = "cannot tell" if self.delivered is None else self.delivered
        return f"{self.sent} sent, delivered: {delivered}, {self.waiting} waiting, {self.failed} failed, {self.empty} empty"


class Stopped(Exception):
    """The sink was stopped while it waited."""


class Sink:
    """Where events go."""

    def __init__(self, place: str, timeout: float, leave_out: bool):
        self.place, self.timeout, self.leave_out = place, timeout, leave_out
        self._sent = self._waiting = self._ended = self._failed = self._empty = 0
        self._is_stopping = False
        self._is_closed, self._refusal = False, None
        self._progress = time.monotonic()

    def send(self, event: "Event | Any", done: "Callable[[], None] | None" = None) -> None:
        """Gives an event to the sink: one of `evb.events`, a sample of a run or of a service, or an `evb.stream.Event`. Waits while
        the queue is full. `done` is called when the event is delivered, from a later call of this sink.

        EvbError if there is no progress for the timeout, or if an event was refused and is not to be left out."""
        self._check_open()
        try:
            messages = self._messages(outgoing(event))
        except _native.EvbError:
            if not self.leave_out:
                raise
            messages = None
        self._sent += 1
        if messages:
            self._begin()
            self._hand_over(messages, done)
        else:
            self._failed += messages is None
            self._empty += messages is not None
            if done:
                done()

    def send_histogram(self, name: str, histogram: Any) -> None:
        """Gives a histogram to the sink: one of hist or boost-histogram, or the tuple that `numpy.histogram` returns. EvbError as in
        `send`."""
        self._check_open()
        messages = self._histogram_messages(name, Histogram.of(histogram))
        self._sent += 1
        self._begin()
        self._hand_over(messages, None)

    def poll(self, seconds: float = 0.0) -> None:
        """Takes note of what was delivered; waits for it for at most so long. EvbError as in `send`."""
        self._take_note(seconds)
        if self._refusal:
            raise _native.EvbError(self._refusal)
        if self._waiting and time.monotonic() - self._progress > self.timeout:
            raise _native.EvbError(self._silence())

    def flush(self) -> None:
        """Waits until everything is delivered. EvbError as in `send`."""
        self._send_gathered()
        while self._waiting:
            self._wait(STEP)

    def stop(self) -> None:
        """Ends all waiting, from another thread or a signal handler too; `forward` returns then."""
        # Not an Event of threads: a signal may come while its lock is held.
        self._is_stopping = True

    @property
    def is_stopping(self) -> bool:
        """True after `stop`."""
        return self._is_stopping

    def drain(self, patience: float = PATIENCE) -> Counts:
        """Waits up to so many seconds for what is on its way, also after `stop`. Returns the counts."""
        end = time.monotonic() + patience
        with contextlib.suppress(Stopped):
            self._send_gathered()
        while self._waiting and (left := end - time.monotonic()) > 0:
            self._take_note(min(left, STEP))
        return self.counts

    def close(self, patience: float = PATIENCE) -> Counts:
        """Waits up to so many seconds for what is on its way, and closes the connections. Returns the last counts."""
        if not self._is_closed:
            end = time.monotonic() + patience
            self.drain(patience)
            self._is_closed = True
            self._disconnect(max(end - time.monotonic(), 0))
        return self.counts

    @property
    def counts(self) -> Counts:
        """The counts so far."""
        return Counts(self._sent, self._ended if self._acknowledges else None, self._waiting, self._failed, self._empty)

    _acknowledges = False

    def _send_gathered(self):
        """Sends what waits for more of its kind, if the sink gathers anything."""

    def _check_open(self):
        if self._is_closed:
            raise _native.EvbError(f"the sink to {self.place} is closed")

    def _begin(self):
        """Something more is on its way."""
        if not self._waiting:
            self._progress = time.monotonic()
        self._waiting += 1

    def _end(self, done, is_good=True):
        """Something has arrived, or has failed and is left out."""
        self._waiting -= 1
        self._ended += is_good
        self._failed += not is_good
        self._progress = time.monotonic()
        if done:
            done()

    def _wait(self, seconds):
        """One step of a wait, of at most so many seconds."""
        if self.is_stopping:
            raise Stopped
        self.poll(seconds)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __repr__(self):
        return f"<evb.stream.{type(self).__name__} to {self.place}: {self.counts}>"
