"""Streams: events and histograms to Kafka and ZeroMQ.

    from evb import stream

    sink = stream.KafkaSink("broker:9092", "detector", stream.Ev44(decoder, id="pixel", time="time"))
    stream.forward("evb-data", sink, follow=True, state="detector.json")

A stream follows the event files of a run, from their beginning or from a kept position, and takes nothing from the run itself. So a
broker that is slow or away never holds a run, and nothing that is stored is lost: when it is back, the stream continues where
it stood. Samples of a run or of a service go the same way, one by one: `sink.send(event)`.

| to | use |
|---|---|
| send the events of files, also while a run writes them | `forward`, or `python3 -m evb.stream` |
| send to a topic of Kafka | `KafkaSink` with `Raw`, `Ev44` or `Ad00` |
| send to a socket of ZeroMQ | `ZmqSink` |
| send one event, a sample or a histogram | `send` and `send_histogram` of a sink |
| know what has arrived | `counts` of a sink |
| make a sink from an address | `sink_of` |

The libraries come with `pip install 'evb[streams]'`. They are imported when a sink is made."""

from ._address import sink_of
from ._event import Event, Fragment
from ._forward import forward
from ._kafka import KafkaSink
from ._schema import Ad00, Ev44, Raw, unpack_raw
from ._sink import Counts, Sink
from ._zmq import ZmqSink

__all__ = ["Ad00", "Counts", "Ev44", "Event", "Fragment", "KafkaSink", "Raw", "Sink", "ZmqSink", "forward", "sink_of", "unpack_raw"]
