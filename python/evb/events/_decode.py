"""Payloads as numbers, by a description of their bytes."""

import os
from typing import Any, NamedTuple

import numpy as np

from .. import _native


class Decoder(NamedTuple):
    """What a payload consists of: a header, then as many items as there are, then a trailer. Each is a type of NumPy, or what
    `numpy.dtype` makes one from; a part that is None is not there.

        Decoder(header=[("board", "<u2"), ("hits", "<u2")], items=[("channel", "<u2"), ("charge", "<u2")])
    """

    header: Any = None
    items: Any = "u1"
    trailer: Any = None


def read_decoder(file: "str | os.PathLike") -> Decoder:
    """Reads a decoder from a TOML file. Each part is a list of fields; `count` makes a field an array.

        byte_order = "big"
        header = [{ name = "board", type = "u2" }, { name = "time", type = "u4" }]
        items = [{ name = "channel", type = "u1" }, { name = "samples", type = "u2", count = 8 }]
    """
    try:
        import tomllib
    except ImportError:  # Python 3.10
        import tomli as tomllib

    with open(file, "rb") as text:
        try:
            described = tomllib.load(text)
        except tomllib.TOMLDecodeError as error:
            raise _native.EvbError(f"{file}: {error}") from None
    orders = {"little": "<", "big": ">"}
    order = orders.get(described.pop("byte_order", "little"))
    unknown = described.keys() - set(Decoder._fields)
    if order is None or unknown:
        wrong = f"unknown key {min(unknown)!r}" if unknown else "byte_order is neither little nor big"
        raise _native.EvbError(f"{file}: {wrong}\nhint: the keys are byte_order, header, items and trailer")
    return Decoder(**{part: _fields(file, part, fields, order) for part, fields in described.items()})


def _fields(file, part, fields, order):
    try:
        return np.dtype([
            (field["name"], order + field["type"], (field["count"],)) if "count" in field else (field["name"], order + field["type"])
            for field in fields
        ])
    except (KeyError, TypeError, ValueError) as error:
        raise _native.EvbError(
            f"{file}: {part}: {error!r}\nhint: a field is {{ name = \"charge\", type = \"u2\" }}, with count = N for an array"
        ) from None


def decode(events, source, decoder, strict):
    import awkward as ak

    from ._awkward import masked

    parts = parts_of(decoder)
    head, tail = (0 if part is None else part.itemsize for part in (parts.header, parts.trailer))
    fragments, lengths = _of_source(events, events._index_of(source))
    rest = lengths - head - tail
    fits = (rest >= 0) & (rest % parts.items.itemsize == 0)
    if strict and (~fits & (lengths >= 0)).any():
        _refuse(events, source, parts, head + tail, int(np.flatnonzero(~fits & (lengths >= 0))[0]), lengths)
    present = fragments[fits]
    bounds = np.concatenate([np.zeros(1, "i8"), np.cumsum(np.where(fits, rest, 0) // parts.items.itemsize)])
    items = events._packed(present, head, -tail or None).view(parts.items)
    fields = {"items": ak.contents.ListOffsetArray(ak.index.Index64(bounds), _numbers(items))}
    if parts.header is not None:
        fields["header"] = _single(events._packed(present, 0, head), fits, parts.header)
    if parts.trailer is not None:
        fields["trailer"] = _single(events._packed(present, -tail), fits, parts.trailer)
    layout = fields["items"] if len(fields) == 1 else ak.contents.RecordArray(list(fields.values()), list(fields))
    return ak.Array(masked(layout, fits))


class _Types(NamedTuple):
    header: Any
    items: Any
    trailer: Any

    def items_of(self, payload: Any) -> "np.ndarray | None":
        """The items of one payload, in place; None if its bytes do not fit."""
        head, tail = (0 if part is None else part.itemsize for part in (self.header, self.trailer))
        rest = len(payload) - head - tail
        if rest < 0 or rest % self.items.itemsize:
            return None
        return np.frombuffer(payload, "u1")[head : head + rest].view(self.items)


def parts_of(decoder: Any) -> _Types:
    """The types of a decoder, of a TOML file of one, or of what NumPy makes a type from."""
    if isinstance(decoder, (str, os.PathLike)) and os.fspath(decoder).endswith(".toml"):
        decoder = read_decoder(decoder)
    if not isinstance(decoder, Decoder):
        decoder = Decoder(items=decoder)
    types = _Types(*(None if part is None else _without_void(np.dtype(part)) for part in decoder))
    if types.items is None or types.items.itemsize == 0:
        raise ValueError("a decoder needs items of at least one byte")
    return types


def _without_void(dtype):
    """The type with bytes of no meaning, such as `V4`, as arrays of bytes: Awkward does not know them."""
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return np.dtype((_without_void(base), shape))
    if dtype.fields is not None:
        parts = [dtype.fields[name] for name in dtype.names]
        formats = [_without_void(part) if part.kind != "V" or part.fields or part.subdtype else ("u1", part.itemsize) for part, *_ in parts]
        offsets = [offset for _, offset, *_ in parts]
        return np.dtype({"names": dtype.names, "formats": formats, "offsets": offsets, "itemsize": dtype.itemsize})
    return dtype if dtype.kind != "V" else np.dtype([("bytes", "u1", (dtype.itemsize,))])


def _of_source(events, source):
    """The fragment of a source in each event, and the length of its payload; a length of -1 where there is no payload."""
    numbers = np.flatnonzero((events.fragments.source == source) & ~events.fragments.is_missing)
    event = np.searchsorted(events._bounds, numbers, side="right") - 1
    fragments, lengths = np.zeros(len(events), "i8"), np.full(len(events), -1, "i8")
    # Of several fragments of a source the first one counts.
    fragments[event[::-1]] = numbers[::-1]
    lengths[event[::-1]] = events.fragments.length[numbers[::-1]]
    return fragments, lengths


def _refuse(events, source, parts, fixed, index, lengths):
    expected = f"items of {parts.items.itemsize} bytes"
    if fixed:
        expected = f"{fixed} bytes of header and trailer, and {expected}"
    raise _native.EvbError(
        f"event {events.event[index]}, source {events._name(events._index_of(source))}: a payload of {lengths[index]} bytes is not {expected}\n"
        "hint: strict=False gives None for such payloads"
    )


def _single(content, fits, dtype):
    """A value for each event; zeros where there is none."""
    values = np.zeros(len(fits), dtype)
    values[fits] = content.view(dtype)
    return _numbers(values)


def _numbers(values):
    """The values as a layout of Awkward, field by field: a field of a record is a view, with gaps between its values."""
    import awkward as ak

    if values.dtype.names is not None:
        fields = [_numbers(values[name]) for name in values.dtype.names]
        return ak.contents.RecordArray(fields, list(values.dtype.names), length=len(values))
    # Awkward has no bytes in the other order, and no texts with gaps.
    native = values.dtype.newbyteorder("=")
    if values.dtype != native or values.dtype.kind == "S":
        values = np.ascontiguousarray(values, native)
    return ak.from_numpy(values, regulararray=True, highlevel=False)
