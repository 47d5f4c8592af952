"""Streams to Kafka and ZeroMQ, compared with the event files. The broker is the mock broker of librdkafka."""

import contextlib
import json
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
import unittest.mock

import numpy as np
import zmq
from confluent_kafka import Consumer, Producer, TopicPartition
from streaming_data_types import deserialise_ad00, deserialise_da00, deserialise_ev44

import evb
from evb import stream
from evb.events import Decoder
from evb.stream._feed import Feed, Position, State
from support import InFolder, evb_command, experiment

HITS = Decoder(header="u4", items=[("pixel", "<u2"), ("time", "<u2")])
# Limits of waits, in seconds: only a failure takes so long.
LONG = 60.0


class Broker:
    """The mock broker, and all that a topic has."""

    def __init__(self):
        self.producer = Producer({"test.mock.num.brokers": 1, "log_level": 0})
        broker = next(iter(self.producer.list_topics(timeout=LONG).brokers.values()))
        self.address = f"{broker.host}:{broker.port}"

    def read(self, topic):
        """The messages of the topic, partition by partition."""
        consumer = Consumer({"bootstrap.servers": self.address, "group.id": "test", "log_level": 0, "fetch.wait.max.ms": 10})
        with contextlib.closing(consumer):
            return [message for part in consumer.list_topics(topic, LONG).topics[topic].partitions
                    for message in self.read_partition(consumer, TopicPartition(topic, part, 0))]

    def read_partition(self, consumer, partition):
        _, end = consumer.get_watermark_offsets(partition, LONG)
        consumer.assign([partition])
        messages = []
        while len(messages) < end:
            message = consumer.poll(LONG)
            if message is None or message.error():
                raise AssertionError(f"partition {partition.partition} ends at {len(messages)} of {end}: {message and message.error()}")
            messages.append(message)
        return messages


class Reader:
    """A PULL socket that is read by a thread; `go` lets it take so many more events."""

    def __init__(self, address, kind=zmq.PULL, go=10**9):
        self.context = zmq.Context()
        self.socket = self.context.socket(kind)
        self.socket.rcvhwm, self.socket.rcvbuf, self.socket.rcvtimeo = 1, 4096, 100
        if kind == zmq.SUB:
            self.socket.subscribe("evb")
        self.socket.connect(address)
        self.go, self.messages, self.is_ending = threading.Semaphore(go), [], False
        self.thread = threading.Thread(target=self._read)
        self.thread.start()

    def _read(self):
        while not self.is_ending:
            self.go.acquire()
            while not self._takes_one() and not self.is_ending:
                pass

    def _takes_one(self):
        """True if a message came. A silence is short, so that the end is noticed."""
        try:
            self.messages.append(self.socket.recv_multipart())
        except zmq.Again:
            return False
        return True

    def close(self):
        self.is_ending = True
        self.go.release()
        self.thread.join(LONG)
        self.context.destroy(linger=0)


def until(is_so, what):
    """Waits until it is so."""
    end = time.monotonic() + LONG
    while not is_so():
        if time.monotonic() > end:
            raise AssertionError(f"waited in vain: {what}")
        time.sleep(0.005)


def stop_after(sink, events):
    """Lets the sink stop when so many events were given to it."""
    send = sink.send

    def counted(event, done):
        send(event, done)
        if sink.counts.sent == events:
            sink.stop()

    sink.send = counted


def numbers_of(messages):
    return sorted(stream.unpack_raw(message.value())[0]["number"] for message in messages)


class Streams(InFolder):
    """A run with faults, and a broker."""

    SIZE = "404 B"
    EVENTS = 300

    def setUp(self):
        super().setUp()
        fault = '[[fault]]\nnode = "ru0"\naction = "lose"\none_in = 20\nsource = 1\n'
        text = experiment(events=self.EVENTS, extra=fault).replace('type = "log-normal", mean = "500 B", rms = "300 B"', f'type = "fixed", size = "{self.SIZE}"')
        # Of the four sources the first unit has two, and so can miss one.
        (self.folder / "small.toml").write_text(text.replace("units = 3", "units = 3\nsources = 4"))
        evb_command("run", "small.toml", "--quiet")
        self.events = evb.events.open("data")
        self.files = [str(file.resolve()) for file in self.events.files]
        self.assertEqual(len(self.files), 2)

    def kafka(self, broker, schema=None, **options):
        sink = stream.KafkaSink(broker.address, "topic", schema, timeout=LONG, **options)
        self.addCleanup(sink.close, 0)
        return sink

    def push(self, **options):
        sink = stream.ZmqSink("tcp://127.0.0.1:0", bind=True, **{"timeout": LONG, **options})
        self.addCleanup(sink.close, 0)
        return sink

    def reader(self, sink, **options):
        reader = Reader(sink.address, **options)
        self.addCleanup(reader.close)
        return reader

    def compare(self, header, payloads):
        """Compares a header and the payloads with the event of the file."""
        event = self.events[int(np.searchsorted(self.events.event, header["number"]))]
        self.assertEqual((header["run"], header["number"]), (1, event.number))
        self.assertEqual((header["complete"], header["triggered"]), (event.complete, event.triggered))
        for shown, payload, fragment in zip(header["fragments"], payloads, event.fragments, strict=True):
            self.assertEqual((shown["source"], shown["index"]), (fragment.source, fragment.index))
            self.assertEqual((shown["status"], shown["size"]), (fragment.status.name.lower(), len(fragment)))
            self.assertEqual(bytes(payload), b"" if fragment.payload is None else bytes(fragment.payload))
            self.assertEqual((shown["counter"], shown["mark"], shown["bytes"]), (fragment.counter, fragment.mark, len(payload)))


class Kafka(Streams):
    def setUp(self):
        super().setUp()
        self.broker = Broker()

    def test_raw_messages_are_the_events(self):
        sink = self.kafka(self.broker)
        counts = stream.forward("data", sink)
        self.assertEqual(counts, (300, 300, 0, 0, 0))
        messages = self.broker.read("topic")
        self.assertEqual(numbers_of(messages), self.events.event.tolist())
        for message in messages:
            self.compare(*stream.unpack_raw(message.value()))

    def test_ev44_has_the_hits_of_the_decoder(self):
        sink = self.kafka(self.broker, stream.Ev44(HITS, "pixel", "time", sources=["ru1", 1], tick_ns=8))
        self.assertEqual(stream.forward("data", sink), (300, 300, 0, 0, 0))
        found = {(event.source_name, event.message_id): event for event in map(deserialise_ev44, (m.value() for m in self.broker.read("topic")))}
        self.assertEqual({source for source, _ in found}, {"ru1", "ru0/1"})
        expected = 0
        for source, index in (("ru1", 2), ("ru0/1", 1)):
            for event, decoded in zip(self.events, self.events.decode(index, HITS)):
                if decoded is None:
                    self.assertNotIn((source, event.number), found)
                    continue
                message, expected = found[source, event.number], expected + 1
                self.assertEqual(message.pixel_id.tolist(), decoded["items"].pixel.to_list())
                self.assertEqual(message.time_of_flight.tolist(), [8 * time for time in decoded["items"].time.to_list()])
                self.assertEqual((message.reference_time.tolist(), message.reference_time_index.tolist()), ([event.triggered], [0]))
        self.assertEqual(len(found), expected)

    def test_ev44_has_the_hits_of_several_events(self):
        sink = self.kafka(self.broker, stream.Ev44(HITS, "pixel", "time", sources=["ru1", 1], events=7))
        self.assertEqual(stream.forward("data", sink, state="state"), (300, 300, 0, 0, 0))
        self.assert_all_delivered("state")
        messages = [deserialise_ev44(message.value()) for message in self.broker.read("topic")]
        for name, index in (("ru1", 2), ("ru0/1", 1)):
            of_source = [message for message in messages if message.source_name == name]
            self.assertEqual({len(message.reference_time) for message in of_source[:-1]}, {7})
            found = {}
            for message in of_source:
                parts = zip(*(np.split(column, message.reference_time_index[1:]) for column in (message.pixel_id, message.time_of_flight)))
                for reference, (pixels, times) in zip(message.reference_time.tolist(), parts, strict=True):
                    found.setdefault(reference, []).append((pixels.tolist(), times.tolist()))
            expected = {}
            for event, decoded in zip(self.events, self.events.decode(index, HITS)):
                if decoded is not None:
                    expected.setdefault(event.triggered, []).append((decoded["items"].pixel.to_list(), decoded["items"].time.to_list()))
            self.assertEqual({time: sorted(hits) for time, hits in found.items()}, {time: sorted(hits) for time, hits in expected.items()})

    def test_events_without_the_source_are_empty(self):
        lost = int((self.events.fragments.is_missing & (self.events.fragments.source == 1)).sum())
        self.assertGreater(lost, 0)
        sink = self.kafka(self.broker, stream.Ev44(HITS, "pixel", "time", sources=[1]))
        self.assertEqual(stream.forward("data", sink, state="state"), (300, 300 - lost, 0, 0, lost))
        self.assert_all_delivered("state")

    def test_ad00_has_the_array(self):
        schema = stream.Ad00(Decoder("u4", ">u2"), shape=(20, 10), sources=["ru1"])
        stream.forward("data", self.kafka(self.broker, schema))
        messages = [deserialise_ad00(message.value()) for message in self.broker.read("topic")]
        self.assertEqual(sorted(message.unique_id for message in messages), self.events.event.tolist())
        for message in messages:
            event = self.events[int(np.searchsorted(self.events.event, message.unique_id))]
            self.assertEqual((message.source_name, message.timestamp_ns), ("ru1", event.triggered))
            np.testing.assert_array_equal(message.data, event["ru1"][4:].view(">u2").reshape(20, 10))

    def test_da00_has_the_histogram(self):
        import hist

        filled = hist.Hist.new.Reg(4, 0, 8, name="energy").Var([0, 1, 5], name="side").Int64()
        filled.fill([1, 1, 7], [0.5, 3, 3])
        sink = self.kafka(self.broker)
        sink.send_histogram("spectrum", filled)
        sink.send_histogram("plain", np.histogram([1, 2, 2], bins=3))
        sink.flush()
        found = {one.source_name: {part.name: part for part in one.data} for one in (deserialise_da00(m.value()) for m in self.broker.read("topic"))}
        np.testing.assert_array_equal(found["spectrum"]["signal"].data.reshape(found["spectrum"]["signal"].shape), filled.values())
        self.assertEqual(found["spectrum"]["signal"].axes, ["energy", "side"])
        self.assertEqual(found["spectrum"]["side"].data.tolist(), [0, 1, 5])
        self.assertEqual(found["plain"]["axis0"].data.tolist(), np.histogram([1, 2, 2], bins=3)[1].tolist())
        with self.assertRaisesRegex(evb.EvbError, "no histogram"):
            sink.send_histogram("wrong", [1, 2])

    def test_a_broker_that_comes_later_gets_all(self):
        with Relay(self.broker.address) as relay:
            sink = stream.KafkaSink(relay.address, "topic", timeout=LONG, config={"reconnect.backoff.max.ms": 100})
            self.addCleanup(sink.close, 0)
            work = threading.Thread(target=stream.forward, args=("data", sink))
            work.start()
            until(lambda: sink.trouble and sink.counts.sent == 300, "librdkafka says that the broker is away")
            self.assertEqual(sink.counts.delivered, 0)
            relay.listen()
            work.join(LONG)
        self.assertEqual(sink.counts, (300, 300, 0, 0, 0))
        self.assertEqual(numbers_of(self.broker.read("topic")), self.events.event.tolist())

    def test_a_broker_that_is_away_is_named_and_nothing_is_lost(self):
        with Relay(self.broker.address) as relay:
            sink = stream.KafkaSink(relay.address, "topic", timeout=0.3)
            self.addCleanup(sink.close, 0)
            with self.assertRaisesRegex(evb.EvbError, f"kafka://{relay.address}/topic has acknowledged nothing for 0.3 s, and 300 events wait"):
                stream.forward("data", sink, state="state")
            self.assertEqual(sink.close(0), (300, 0, 300, 0, 0))
            self.assertEqual(State("state", sink.place).load(), {})
            again = stream.KafkaSink(relay.address, "topic", timeout=LONG)
            self.addCleanup(again.close, 0)
            relay.listen()
            self.assertEqual(stream.forward("data", again, state="state"), (300, 300, 0, 0, 0))
        self.assert_all_delivered("state")
        self.assertEqual(numbers_of(self.broker.read("topic")), self.events.event.tolist())

    def test_a_stream_that_was_stopped_continues_without_a_gap(self):
        first = self.kafka(self.broker)
        stop_after(first, 100)
        counts = stream.forward("data", first, state="state")
        self.assertEqual((counts.sent, counts.waiting), (100, 0))
        self.assertEqual(len(self.broker.read("topic")), 100)
        self.assertEqual(stream.forward("data", self.kafka(self.broker), state="state"), (200, 200, 0, 0, 0))
        self.assertEqual(numbers_of(self.broker.read("topic")), self.events.event.tolist())
        self.assertEqual(stream.forward("data", self.kafka(self.broker), state="state").sent, 0)

    def test_an_event_that_is_refused_stops_the_stream_or_is_left_out(self):
        small = {"message.max.bytes": 1000}
        with self.assertRaisesRegex(evb.EvbError, "(?s)refuses a message: .*too large.*hint"):
            stream.forward("data", self.kafka(self.broker, config=small), state="state")
        self.assertEqual(State("state", self.kafka(self.broker).place).load(), {})
        counts = stream.forward("data", self.kafka(self.broker, config=small, leave_out=True), state="state")
        self.assertEqual(counts, (300, 0, 0, 300, 0))
        self.assert_all_delivered("state")

    def test_a_message_that_is_larger_than_the_queue_is_refused(self):
        payload = bytes(70 << 20)
        fragment = stream.Fragment("ru0", 0, "good", None, None, len(payload), payload)
        sink = self.kafka(self.broker, config={"message.max.bytes": 100_000_000})
        with self.assertRaisesRegex(evb.EvbError, "too large"):
            sink.send(stream.Event(1, 1, True, None, None, [fragment]))

    def test_hits_are_gathered_up_to_the_limit_of_a_message(self):
        payload = np.zeros(60_000, [("id", "<u2"), ("time", "<u2")])
        fragment = stream.Fragment("ru0", 0, "good", None, None, payload.nbytes, payload.tobytes())
        sink = self.kafka(self.broker, stream.Ev44(payload.dtype, events=5))
        for number in range(3):
            sink.send(stream.Event(1, number, True, number, None, [fragment]))
        sink.flush()
        self.assertEqual(sink.counts, (3, 3, 0, 0, 0))
        self.assertEqual([deserialise_ev44(m.value()).message_id for m in self.broker.read("topic")], [0, 1, 2])

    def test_what_is_gathered_does_not_hold_the_position(self):
        sink = self.kafka(self.broker, stream.Ev44(HITS, "pixel", "time", sources=["ru1"], events=1000))
        with unittest.mock.patch("evb.stream._forward.MOST_ON_THE_WAY", 10):
            self.assertEqual(stream.forward("data", sink), (300, 300, 0, 0, 0))

    def test_a_payload_that_does_not_fit_is_named_or_left_out(self):
        wrong = stream.Ev44(Decoder(items=HITS.items, header="u1"), "pixel", "time")
        with self.assertRaisesRegex(evb.EvbError, "source ru0: a payload of 404 bytes does not fit"):
            stream.forward("data", self.kafka(self.broker, wrong))
        self.assertEqual(stream.forward("data", self.kafka(self.broker, wrong, leave_out=True)), (300, 0, 0, 300, 0))
        large = stream.Ev44(Decoder("u4", [("pixel", "<u4"), ("time", "<u4")]), "pixel", "time")
        with self.assertRaisesRegex(evb.EvbError, "too large for ev44"):
            stream.forward("data", self.kafka(self.broker, large))

    def test_a_run_is_followed_by_the_command(self):
        text = experiment(events=2_000_000_000).replace("events", 'type = "rate"\nrate = "400 Hz"\nevents').replace('"data"', '"live"')
        words = [sys.executable, "-m", "evb.stream", "live", "--follow", "--state", "state", "--to", f"kafka://{self.broker.address}/topic"]
        command = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(command.kill)
        with evb.run(evb.parse(text)) as run:
            until(lambda: pathlib.Path("state").exists() and json.loads(pathlib.Path("state").read_text())["files"], "the first events are delivered")
            next(status for status in run.watch(0.01) if status.ended > 200)
        events = evb.events.open("live")
        ends = evb.events.follow("live")
        ends.read()
        whole = {str(pathlib.Path(file).resolve()): end for file, end in ends.positions.items()}
        until(lambda: json.loads(pathlib.Path("state").read_text())["files"] == whole, "all events are delivered")
        command.send_signal(signal.SIGTERM)
        output, errors = command.communicate(timeout=LONG)
        self.assertEqual((command.returncode, errors), (0, ""))
        self.assertEqual(output, f"{len(events)} sent, delivered: {len(events)}, 0 waiting, 0 failed, 0 empty\n")
        self.assertEqual(numbers_of(self.broker.read("topic")), events.event.tolist())

    def assert_all_delivered(self, state):
        files = json.loads(pathlib.Path(state).read_text())["files"]
        follower = evb.events.follow("data")
        follower.read()
        self.assertEqual(files, {str(pathlib.Path(file).resolve()): end for file, end in follower.positions.items()})


class Relay:
    """A port at which nobody answers until `listen`: then it leads to the broker."""

    def __init__(self, target):
        host, port = target.split(":")
        self.target, self.server = (host, int(port)), socket.socket()
        self.server.bind(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.server.getsockname()[1]}"
        self.links = []

    def listen(self):
        self.server.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, far = self.server.accept()[0], socket.create_connection(self.target)
                self.links += [near, far]
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._copy, args=(source, sink), daemon=True).start()

    def _copy(self, source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for link in [self.server, *self.links]:
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
            link.close()


class LargeEvents(Streams):
    """Events that are sent without a copy, and are more than the buffers of a connection hold."""

    SIZE = "200 kB"
    EVENTS = 50

    def test_a_slow_reader_gets_all_in_order(self):
        sink = self.push(high_water=2)
        reader = self.reader(sink, go=0)
        work = threading.Thread(target=stream.forward, args=("data", sink))
        work.start()
        until(lambda: sink.counts.waiting > 1, "the sink waits for the reader")
        self.assertEqual(reader.messages, [])
        self.assertLess(sink.counts.sent, 50)
        reader.go.release(50)
        work.join(LONG)
        until(lambda: len(reader.messages) == 50, "the reader has all")
        self.assertEqual(sink.counts, (50, None, 0, 0, 0))
        for topic, header, *payloads in reader.messages:
            self.assertEqual(topic, b"evb")
            self.compare(json.loads(header), payloads)
        numbers = [json.loads(message[1])["number"] for message in reader.messages]
        self.assertEqual(numbers, [event.number for event, _ in Feed("data", {}, may_come=False).read()])


class ZeroMq(Streams):
    def test_a_restart_continues_without_a_gap(self):
        first = self.push()
        reader = self.reader(first)
        stop_after(first, 50)
        stream.forward("data", first, state="state")
        until(lambda: len(reader.messages) == 50, "the reader has the first part")
        State("state", "another").save(State("state", first.place).load())
        second = self.push()
        reader_of_rest = self.reader(second)
        with self.assertRaisesRegex(evb.EvbError, "the position is that of the stream to another"):
            stream.forward("data", second, state="state")
        State("state", second.place).save(State("state", "another").load())
        stream.forward("data", second, state="state")
        until(lambda: len(reader_of_rest.messages) == 250, "the reader has the rest")
        numbers = [json.loads(message[1])["number"] for message in reader.messages + reader_of_rest.messages]
        self.assertEqual(sorted(numbers), self.events.event.tolist())

    def test_without_a_reader_push_waits_and_says_so(self):
        with self.assertRaisesRegex(evb.EvbError, "(?s)zmq.push://127.0.0.1:0: no reader has taken anything for 0.2 s, and 1 events wait.*hint"):
            stream.forward("data", self.push(timeout=0.2))

    def test_publish_cannot_tell(self):
        sink = self.push(kind="pub")
        self.assertEqual(str(stream.forward("data", sink)), "300 sent, delivered: cannot tell, 0 waiting, 0 failed, 0 empty")
        reader = self.reader(sink, kind=zmq.SUB)
        until(lambda: sink.send(self.events[7]) or reader.messages, "the reader has subscribed")
        self.compare(json.loads(reader.messages[0][1]), reader.messages[0][2:])

    def test_samples_and_histograms(self):
        slow = experiment(events=400, extra="[run]\nsamples = 100").replace("events", 'type = "rate"\nrate = "200 Hz"\nevents')
        sink, sent = self.push(), []
        reader = self.reader(sink)
        with evb.run(evb.parse(slow.replace('"data"', '"live"'))) as run:
            for _ in run.watch(0.05):
                for sample in run.samples():
                    sink.send(sample)
                    sent.append(sample)
        self.assertTrue(sent)
        counts = np.arange(3.0)
        sink.send_histogram("plain", (counts, np.arange(4.0)))
        sink.flush()
        until(lambda: len(reader.messages) == len(sent) + 1, "the reader has all")
        for sample, (_, header, *payloads) in zip(sent, reader.messages):
            self.assertEqual(json.loads(header)["number"], sample.number)
            self.assertEqual(payloads, [fragment.payload for fragment in sample.fragments])
        _, header, *arrays = reader.messages[-1]
        header = json.loads(header)
        self.assertEqual(header, {"histogram": "plain", "type": "<f8", "shape": [3], "axes": [{"name": "axis0", "edges": 4}]})
        self.assertEqual(np.frombuffer(arrays[0], header["type"]).tolist(), counts.tolist())
        self.assertEqual(np.frombuffer(arrays[1], "f8").tolist(), [0, 1, 2, 3])


class Positions(Streams):
    def test_the_position_stays_before_what_is_not_delivered(self):
        position = Position({})
        first, second, third = (position.begin("a", end) for end in (10, 20, 30))
        other = position.begin("b", 5)
        second()
        self.assertEqual((position.files, position.on_the_way), ({}, 4))
        first()
        other()
        self.assertEqual(position.files, {"a": 20, "b": 5})
        third()
        self.assertEqual((position.files, position.on_the_way), ({"a": 30, "b": 5}, 0))

    def test_each_position_is_where_the_next_event_begins(self):
        """A feed from any position has all that comes behind it, and nothing else."""
        events = list(Feed("data", {}, may_come=False).read())
        feed = Feed("data", {}, may_come=False)
        for count, (_, delivered) in enumerate(feed.read(), start=1):
            delivered()
            if count % 37 == 0:
                rest = [event.number for event, _ in Feed("data", feed.position.files, may_come=False).read()]
                self.assertEqual(sorted(rest), sorted(event.number for event, _ in events[count:]))

    def test_a_kept_position_that_is_none_is_named(self):
        for text in ("", "[]", '{"format": 1, "to": "x"}', '{"format": 1, "to": "x", "files": {"a": "b"}}'):
            pathlib.Path("state").write_text(text)
            with self.assertRaisesRegex(evb.EvbError, "state: this is no position"):
                State("state", "x").load()
        pathlib.Path("state").write_text('{"format": 2, "to": "x", "files": {}}')
        with self.assertRaisesRegex(evb.EvbError, "format 2"):
            State("state", "x").load()


class Addresses(InFolder):
    def test_wrong_addresses_are_named(self):
        pathlib.Path("hits.toml").write_text('items = [{ name = "pixel", type = "u2" }]')
        for address, expected in [
            ("file:///x", "no address of a stream"), ("kafka://host", "no address"), ("zmq+pull://host:1", "no address"),
            ("kafka://host:1/topic?schema=ev42", "no schema 'ev42'"), ("kafka://host:1/topic?schema=ev44", "needs a decoder"),
            ("kafka://host:1/topic?speed=1", "unknown setting 'speed'"), ("zmq+push://*:0?schema=raw", "unknown setting 'schema'"),
            ("kafka://host:1/topic?schema=ev44&decoder=hits.toml&id=pixel", "no field 'time'"), ("zmq+push://nowhere", "nowhere"),
            ("kafka://host:1/topic?schema=ev44&decoder=absent.toml", "absent.toml"),
            ("kafka://host:1/topic?schema=ad00&decoder=hits.toml&shape=2by2", "2by2"), ("kafka://host:1/topic?raw", "raw"),
        ]:
            with self.subTest(address), self.assertRaisesRegex(evb.EvbError, f"(?s){expected}"):
                stream.sink_of(address)

    def test_the_command_says_what_is_wrong(self):
        command = [sys.executable, "-m", "evb.stream", "absent.evb", "--to", "zmq+push://*:0"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONG)
        self.assertEqual(done.returncode, 2)
        self.assertIn("absent.evb", done.stderr)
        done = subprocess.run([*command[:-1], "tcp://*:0"], capture_output=True, text=True, timeout=LONG)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("hint: kafka://", done.stderr)


if __name__ == "__main__":
    unittest.main()
