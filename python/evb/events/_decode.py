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

    parts = _parts(decoder)
    fragments = _of_source(events, events._index_of(source))
    present = fragments >= 0
    present[present] = ~events.fragments.is_missing[fragments[present]]
    lengths = events.fragments.length[fragments].astype("i8")
    fixed = sum(part.itemsize for part in (parts.header, parts.trailer) if part is not None)
    rest = np.where(present, lengths, 0) - fixed
    fits = present & (rest >= 0) & (rest % parts.items.itemsize == 0)
    if strict and (present & ~fits).any():
        _refuse(events, source, parts, fixed, int(np.flatnonzero(present & ~fits)[0]), lengths)
    rest = np.where(fits, rest, 0)
    content, starts = _bytes(events, fragments, fits, parts)
    fields = {}
    at = starts
    if parts.header is not None:
        fields["header"] = _single(content, at, fits, parts.header)
        at = at + parts.header.itemsize
    fields["items"] = _lists(content, at, rest, parts.items)
    if parts.trailer is not None:
        fields["trailer"] = _single(content, at + rest, fits, parts.trailer)
    layout = fields["items"] if len(fields) == 1 else ak.contents.RecordArray(list(fields.values()), list(fields))
    return ak.Array(masked(layout, fits))


class _Types(NamedTuple):
    header: Any
    items: Any
    trailer: Any


def _parts(decoder):
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
    """The number of the fragment of a source in each event; -1 without one."""
    numbers = np.flatnonzero(events.fragments.source == source)
    event = np.searchsorted(events._bounds, numbers, side="right") - 1
    fragments = np.full(len(events), -1, "i8")
    # Of several fragments of a source the first one counts.
    fragments[event[::-1]] = numbers[::-1]
    return fragments


def _refuse(events, source, parts, fixed, index, lengths):
    expected = f"items of {parts.items.itemsize} bytes"
    if fixed:
        expected = f"{fixed} bytes of header and trailer, and {expected}"
    raise _native.EvbError(
        f"event {events.event[index]}, source {events._name(events._index_of(source))}: a payload of {lengths[index]} bytes is not {expected}\n"
        "hint: strict=False gives None for such payloads"
    )


def _bytes(events, fragments, fits, parts):
    """Bytes with the payloads, and where those begin: the file itself if all numbers lie at multiples of their size in it."""
    sizes = [part.itemsize for part in parts if part is not None]
    aligned = all(size in (1, 2, 4, 8) for size in sizes) and (parts.header is None or parts.header.itemsize % parts.items.itemsize == 0)
    if len(events._maps) == 1 and aligned and parts.header is None and parts.trailer is None:
        content = np.asarray(events._maps[0])
        # The views of larger numbers need whole numbers of them.
        return content[: len(content) // 8 * 8], np.where(fits, events.fragments._columns["offset"][fragments], 0)
    lengths = np.where(fits, events.fragments.length[fragments], 0).astype("i8")
    return events._packed(fragments[fits]), np.cumsum(lengths) - lengths


def _lists(content, starts, lengths, dtype):
    """A list of items for each event."""
    import awkward as ak

    size = dtype.itemsize
    if (starts % size == 0).all():
        whole = content[: len(content) // size * size].view(dtype)
        index = ak.index.Index64(starts // size), ak.index.Index64((starts + lengths) // size)
        return ak.contents.ListArray(*index, _numbers(whole))
    from ._events import ranges

    packed = content[ranges(starts, lengths)].view(dtype)
    bounds = np.concatenate([np.zeros(1, "i8"), np.cumsum(lengths // size)])
    return ak.contents.ListOffsetArray(ak.index.Index64(bounds), _numbers(packed))


def _single(content, starts, fits, dtype):
    """One item for each event; zeros where there is none."""
    from ._events import ranges

    values = np.zeros(len(starts), dtype)
    count = int(fits.sum())
    values[fits] = content[ranges(starts[fits], np.full(count, dtype.itemsize))].view(dtype)
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
