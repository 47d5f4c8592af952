"""Events to Kafka, by librdkafka. What the broker has acknowledged counts as delivered, and nothing else."""

import logging
from typing import Any

from .. import _native
from ._schema import Raw, da00
from ._sink import STEP, TIMEOUT, Sink

# Messages that wait for the broker in memory, and their kilobytes.
QUEUE_MESSAGES, QUEUE_KILOBYTES = 100_000, 65_536
# Hits in a message of several events, of 8 bytes each: below the usual limit of a message, 1 MB.
GATHERED_HITS = 100_000
# Errors of a broker, or of librdkafka, about one message.
OF_A_MESSAGE = {"MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "INVALID_MSG", "INVALID_RECORD", "POLICY_VIOLATION"}

_log = logging.getLogger("evb.stream")
_log.addHandler(logging.NullHandler())


class KafkaSink(Sink):
    """Sends events to a topic of Kafka.

        KafkaSink("broker1:9092,broker2:9092", "detector", Ev44(decoder, id="pixel", time="time"))

    `schema` is `Raw()`, an `Ev44` or an `Ad00`; histograms are always `da00`. `timeout` is the longest time in seconds without an
    acknowledgement, `float("inf")` for no limit. With `leave_out` an event that is too large or not valid counts as failed, and the next ones go
    on; else it is an error. `config` are settings of librdkafka, such as those of TLS. `trouble` is what librdkafka said last of a broker that
    it cannot reach."""

    _acknowledges = True

    def __init__(self, brokers: str, topic: str, schema: Any = None, timeout: float = TIMEOUT, leave_out: bool = False,
                 config: "dict | None" = None):
        try:
            import confluent_kafka
        except ImportError:
            raise _native.EvbError("Kafka needs confluent-kafka\nhint: pip install 'evb[streams]'") from None
        super().__init__(f"kafka://{brokers}/{topic}", timeout, leave_out)
        self.brokers, self.topic, self._schema = brokers, topic, schema or Raw()
        self.trouble, self._gathered = "", {}
        self._failure = confluent_kafka.KafkaException
        self._too_large = confluent_kafka.KafkaError(confluent_kafka.KafkaError.MSG_SIZE_TOO_LARGE)
        settings = {
            "bootstrap.servers": brokers,
            # The order of the messages of a key, and no copies from repetitions within a connection.
            "enable.idempotence": True,
            # The sink has the limit: a message waits for its broker as long as the sink does.
            "message.timeout.ms": 0,
            "queue.buffering.max.messages": QUEUE_MESSAGES,
            "queue.buffering.max.kbytes": QUEUE_KILOBYTES,
            "linger.ms": 5,
            "error_cb": self._note,
            **(config or {}),
        }
        try:
            self._producer = confluent_kafka.Producer(settings, logger=_log)
        except (self._failure, ValueError, TypeError) as error:
            raise _native.EvbError(f"{self.place}: {_reason(error)}\nhint: `config` has settings of librdkafka") from None

    def _messages(self, event):
        return self._schema.messages(event)

    def _histogram_messages(self, name, histogram):
        return [da00(name, histogram)]

    def _hand_over(self, messages, done):
        delivery = _Delivery(self, len(messages), done)
        for message in messages:
            if isinstance(message.value, bytes):
                self._produce(message, delivery.report)
            else:
                self._gather(message, delivery)
        self.poll()

    def _gather(self, message, delivery):
        """Keeps a part of a message that has those of several events."""
        hits = sum(len(part.ids) for part, _ in self._gathered.get(message.key, []))
        if hits and hits + len(message.value.ids) > GATHERED_HITS:
            self._send_parts(message.key)
        parts = self._gathered.setdefault(message.key, [])
        parts.append((message.value, delivery))
        if len(parts) == self._schema.events:
            self._send_parts(message.key)

    def _send_gathered(self):
        for key in list(self._gathered):
            self._send_parts(key)

    def _send_parts(self, key):
        parts, deliveries = zip(*self._gathered.pop(key))

        def report(error, message):
            for delivery in deliveries:
                delivery.report(error, message)

        self._produce(self._schema.joined(key, parts), report)

    def _produce(self, message, report):
        while True:
            try:
                return self._producer.produce(self.topic, message.value, message.key, on_delivery=report)
            except BufferError:
                # The queue is full: the broker is slower than the events come, or the message is larger than all of the queue.
                if not len(self._producer):
                    return report(self._too_large, None)
                self._wait(STEP)
            except self._failure as error:
                return report(error.args[0], None)

    def _take_note(self, seconds):
        self._producer.poll(seconds)

    def _disconnect(self, _seconds):
        self._producer.purge()
        self._producer.poll(0)

    def _note(self, error):
        """Something is wrong with a broker, mostly for a while."""
        self.trouble = _reason(error)

    def _leaves_out(self, error):
        """True for what is wrong with one message and not with the stream, if such events are to be left out."""
        return self.leave_out and error.name() in OF_A_MESSAGE

    def _refuse(self, error):
        self._refusal = self._refusal or (
            f"{self.place} refuses a message: {_reason(error)}\nhint: set the limits of topic and producer, or let refused events be left out"
        )

    def _silence(self):
        trouble = f" ({self.trouble})" if self.trouble else ""
        return (f"{self.place} has acknowledged nothing for {self.timeout:g} s, and {self._waiting} events wait{trouble}\n"
                "hint: is a broker there? What is stored is not lost: a stream with a kept position continues behind what was delivered")


class _Delivery:
    """The messages of an event that are on their way."""

    __slots__ = ("sink", "waiting", "done", "is_good")

    def __init__(self, sink, messages, done):
        self.sink, self.waiting, self.done, self.is_good = sink, messages, done, True

    def report(self, error, _message):
        """A message was acknowledged, or has failed for good."""
        sink = self.sink
        if error is not None:
            if sink._is_closed:
                return
            self.is_good = False
            if not sink._leaves_out(error):
                # The position stays before this event.
                sink._refuse(error)
                self.done = None
        self.waiting -= 1
        if not self.waiting:
            sink._end(self.done, self.is_good)


def _reason(error):
    error = error.args[0] if isinstance(error, Exception) and error.args else error
    return error.str() if hasattr(error, "str") else str(error)
