"""Sinks by their address, as the command has them."""

import inspect
import urllib.parse
from typing import Any

from .. import _native
from ..events import read_decoder
from ._kafka import KafkaSink
from ._schema import Ad00, Ev44, Raw
from ._sink import Sink
from ._zmq import ZmqSink

HINT = "hint: kafka://host:port/topic?schema=raw, zmq+push://*:5556 or zmq+pub://*:5556"


def sink_of(address: str, **options: Any) -> Sink:
    """The sink of an address; `options` are those of `KafkaSink` and `ZmqSink`, such as `timeout`.

        kafka://broker1:9092,broker2:9092/topic?schema=ev44&decoder=board.toml&id=pixel&time=time&tick_ns=8&sources=ru0,ru1
        kafka://broker:9092/topic?schema=ad00&decoder=camera.toml&shape=512x512
        zmq+push://*:5556?topic=run    zmq+pub://10.0.0.5:5556?bind=yes    zmq+push://reader:5556

    `*` for the host, or `bind=yes`, waits for readers to connect. EvbError for an address that is none."""
    try:
        parts = urllib.parse.urlsplit(address)
        settings = dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError as error:
        raise _native.EvbError(f"{address}: {error}\n{HINT}") from None
    if parts.scheme == "kafka" and parts.netloc and parts.path.strip("/"):
        return KafkaSink(parts.netloc, parts.path.strip("/"), _schema(address, settings), **options)
    kind = parts.scheme.removeprefix("zmq+")
    if parts.scheme in ("zmq+push", "zmq+pub") and parts.netloc:
        _refuse_unknown(address, settings, {"topic", "bind"})
        bind = settings.get("bind", "yes" if parts.netloc.startswith("*") else "no") == "yes"
        return ZmqSink(f"tcp://{parts.netloc}", kind, bind, settings.get("topic", "evb"), **options)
    raise _native.EvbError(f"{address} is no address of a stream\n{HINT}")


def _schema(address, settings):
    schemas = {"raw": Raw, "ev44": Ev44, "ad00": Ad00}
    name = settings.pop("schema", "raw")
    if name not in schemas:
        raise _native.EvbError(f"{address}: no schema {name!r}\nhint: one of {', '.join(schemas)}; histograms are da00 by themselves")
    schema = schemas[name]
    known = [] if schema is Raw else list(inspect.signature(schema).parameters)
    _refuse_unknown(address, settings, set(known))
    if schema is not Raw and "decoder" not in settings:
        raise _native.EvbError(f"{address}: {name} needs a decoder\nhint: decoder=FILE, a TOML file as for evb.events")
    try:
        return schema(**{key: _READERS.get(key, str)(value) for key, value in settings.items()})
    except (ValueError, OSError) as error:
        raise _native.EvbError(f"{address}: {error}") from None


# Settings that are no texts.
_READERS = {
    "decoder": read_decoder,
    "sources": lambda text: text.split(","),
    "shape": lambda text: tuple(map(int, text.split("x"))),
    "tick_ns": float,
    "events": int,
}


def _refuse_unknown(address, settings, known):
    if unknown := settings.keys() - known:
        raise _native.EvbError(f"{address}: unknown setting {min(unknown)!r}\nhint: one of: {', '.join(sorted(known)) or 'none'}")
