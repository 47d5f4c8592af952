"""Events to ZeroMQ. Nobody acknowledges there: known is only what was written to a connection."""

import collections
import json
import time
from typing import Any

from .. import _native
from ._sink import STEP, TIMEOUT, Sink

# Messages that wait for each connection.
HIGH_WATER = 1000
# Payloads of fewer bytes are copied, because that is faster.
COPIED_BYTES = 65_536
# A wait looks this often for what was written, in seconds.
WRITE_STEP = 0.005


class ZmqSink(Sink):
    """Sends events to a PUSH or PUB socket of ZeroMQ, as messages of several frames: the topic, the header in JSON, and the payload of
    each fragment, empty where it is missing.

        ZmqSink("tcp://*:5556", bind=True)

    `kind` is `push`: each event goes to one of the readers, and the sink waits while all are busy. Or it is `pub`: each event goes to
    all readers, and one that is too slow misses events without a note. `timeout` is the longest time in seconds in which no
    reader takes anything, `float("inf")` for no limit."""

    def __init__(self, address: str, kind: str = "push", bind: bool = False, topic: str = "evb", timeout: float = TIMEOUT,
                 leave_out: bool = False, high_water: int = HIGH_WATER):
        try:
            import zmq
        except ImportError:
            raise _native.EvbError("ZeroMQ needs pyzmq\nhint: pip install 'evb[streams]'") from None
        if kind not in ("push", "pub"):
            raise _native.EvbError(f"no socket of ZeroMQ is {kind!r} here\nhint: push or pub")
        super().__init__(f"zmq+{kind}://{address.removeprefix('tcp://')}", timeout, leave_out)
        self._topic, self._again, self._ready = topic.encode(), zmq.Again, zmq.POLLOUT
        self._more, self._now = zmq.SNDMORE, zmq.DONTWAIT
        self._on_the_way = collections.deque()
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.PUSH if kind == "push" else zmq.PUB)
        self._socket.sndhwm, self._socket.copy_threshold = high_water, 0
        # Events wait for a reader here, where they count, and not in a connection that is not there yet.
        self._socket.immediate = True
        try:
            (self._socket.bind if bind else self._socket.connect)(address)
        except zmq.ZMQError as error:
            self.close(0)
            raise _native.EvbError(f"{address}: {error}\nhint: an address is tcp://host:port, with bind=True tcp://*:port") from None

    @property
    def address(self) -> str:
        """The address of the socket; one that was bound to port 0 has its port here."""
        return self._socket.last_endpoint.decode()

    def _messages(self, event):
        return [event.header(), *event.payloads()]

    def _histogram_messages(self, name, histogram):
        axes = [{"name": axis, "edges": len(edges)} for axis, edges in histogram.axes]
        header = {"histogram": name, "type": histogram.counts.dtype.str, "shape": histogram.counts.shape, "axes": axes}
        return [json.dumps(header, separators=(",", ":")).encode(), histogram.counts, *(edges for _, edges in histogram.axes)]

    def _hand_over(self, frames, done):
        while not self._takes_first():
            self._socket.poll(1000 * STEP, self._ready)
            self._wait(0)
        for frame in frames[:-1]:
            self._socket.send(frame, self._more, copy=_bytes(frame) < COPIED_BYTES)
        # The last frame says when all have been written.
        self._on_the_way.append((self._socket.send(frames[-1], copy=False, track=True), done))
        self.poll()

    def _takes_first(self):
        """True if a reader takes the message that begins; all its frames go to that one."""
        try:
            self._socket.send(self._topic, self._more | self._now)
        except self._again:
            return False
        return True

    def _take_note(self, seconds):
        self._reap()
        if seconds and self._waiting:
            # The end of a write wakes nobody: the wait is in short steps.
            time.sleep(min(seconds, WRITE_STEP))
            self._reap()

    def _reap(self):
        while self._on_the_way and self._on_the_way[0][0].done:
            self._end(self._on_the_way.popleft()[1])

    def _disconnect(self, seconds):
        # What is in the buffers of a connection may take as long.
        self._context.destroy(linger=int(1000 * seconds))

    def _silence(self):
        return (f"{self.place}: no reader has taken anything for {self.timeout:g} s, and {self._waiting} events wait\n"
                "hint: is a reader connected? What is stored is not lost: a stream with a kept position continues")


def _bytes(frame: Any) -> int:
    return memoryview(frame).nbytes
