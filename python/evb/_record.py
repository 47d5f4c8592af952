"""Records: the results of runs and simulations."""

import json
import os
from typing import TYPE_CHECKING, Iterable

from . import _native

if TYPE_CHECKING:
    from ._histogram import Histogram

WIDTH = 88


class _Part:
    """An object of a record. Its values are attributes and items, with the names of the reference of records."""

    __slots__ = ("_values",)

    def __init__(self, values):
        self._values = values

    def __getattr__(self, name):
        try:
            return _shaped(self._values[name])
        except KeyError:
            raise AttributeError(f"this record has no {name!r}; it has {', '.join(self._values)}") from None

    def __getitem__(self, name):
        return _shaped(self._values[name])

    def __contains__(self, name):
        return name in self._values

    def __iter__(self):
        return iter(self._values)

    def __len__(self):
        return len(self._values)

    def __eq__(self, other):
        return isinstance(other, _Part) and self._values == other._values

    __hash__ = None

    def keys(self):
        return self._values.keys()

    def get(self, name, default=None):
        return _shaped(self._values.get(name, default))

    def to_dict(self) -> dict:
        """The values as plain dictionaries and lists."""
        return self._values

    def __dir__(self):
        return [*super().__dir__(), *self._values]

    def __getstate__(self):
        return self._values

    def __setstate__(self, values):
        self._values = values

    def __repr__(self):
        return repr(self._values)


def _shaped(value):
    if isinstance(value, dict):
        return _Part(value)
    if isinstance(value, list):
        return [_shaped(item) for item in value]
    return value


class Record(_Part):
    """The record of a run or a simulation, such as `record.events.built`. docs/reference/record.md has all names."""

    __slots__ = ()

    @classmethod
    def from_json(cls, text: str) -> "Record":
        """The record that `evb run --json` or `evb simulate --json` has printed."""
        return cls(json.loads(text))

    def to_json(self) -> str:
        """The record as one line of JSON."""
        return json.dumps(self._values, separators=(",", ":"))

    @property
    def outcome(self) -> str:
        """`good`, `not good`, or `cannot tell`."""
        return _native.outcome(self.to_json())

    @property
    def histograms(self) -> "dict[str, Histogram]":
        """The histograms of `[[monitor]]` by name."""
        from ._histogram import by_name

        return by_name(self._values.get("histograms", []))

    def summary(self, width: int = WIDTH) -> str:
        """What `evb run` or `evb simulate` prints."""
        make = _native.simulation_summary if self._values.get("kind") == "simulation" else _native.run_summary
        return make(self.to_json(), width)

    def explain(self) -> list:
        """What limits it, how that is known, and what to try: a list of limits, the strongest first."""
        return _shaped(json.loads(_native.explain(self.to_json())))

    def explanation(self, width: int = WIDTH) -> str:
        """The limits in words, as `evb explain` prints them."""
        return _native.explanation(self.to_json(), width)

    def plots(self) -> "dict[str, Plot]":
        """Its plots by name, as `evb simulate --out` writes them."""
        return _plots([self])

    def __repr__(self):
        return f"<evb.Record of {self._values.get('experiment')!r}: {self.outcome}>"

    def __str__(self):
        return self.summary()

    def _repr_html_(self):
        pictures = "".join(plot.svg for plot in self.plots().values())
        return f"<pre>{_escaped(self.summary())}</pre>{pictures}"


class Plot:
    """A plot as a picture of SVG, which a notebook shows."""

    def __init__(self, svg: str):
        self.svg = svg

    def save(self, file: "str | os.PathLike") -> None:
        """Writes the picture."""
        with open(file, "w", encoding="utf-8") as output:
            output.write(self.svg)

    def _repr_svg_(self):
        return self.svg


class Records(list):
    """The records of a sweep, in the order of its points."""

    def rows(self) -> "list[dict]":
        """A dictionary for each record: the swept keys, and every number and text with a dot between the names of objects.
        Lists, which differ in length from record to record, are left out."""
        return [{**record.to_dict().get("sweep", {}), **_flat(record.to_dict())} for record in self]

    def to_pandas(self):
        """A table of pandas, a row for each record."""
        import pandas

        return pandas.DataFrame(self.rows())

    def to_arrow(self):
        """A table of Arrow, a row for each record."""
        import pyarrow

        rows = self.rows()
        names = dict.fromkeys(name for row in rows for name in row)
        return pyarrow.table({name: [row.get(name) for row in rows] for name in names})

    def plots(self) -> "dict[str, Plot]":
        """The plots of the sweep by name."""
        return _plots(self)

    def save(self, file: "str | os.PathLike") -> None:
        """Writes the records as JSON, one on a line, as `evb simulate --json` prints them; or a table of `rows` as Parquet, if the
        file ends with `.parquet`."""
        if os.fspath(file).endswith(".parquet"):
            import pyarrow.parquet

            pyarrow.parquet.write_table(self.to_arrow(), file)
            return
        with open(file, "w", encoding="utf-8") as output:
            output.writelines(record.to_json() + "\n" for record in self)

    def _repr_html_(self):
        from . import _native

        table = _native.sweep_table([record.to_json() for record in self], WIDTH)
        return f"<pre>{_escaped(table)}</pre>" + "".join(plot.svg for plot in self.plots().values())


def read_records(file: "str | os.PathLike") -> Records:
    """Reads records: one on a line, as `--json` of the commands prints them."""
    with open(file, encoding="utf-8") as lines:
        return Records(Record.from_json(line) for line in lines if line.strip())


def compare(old: "Record | Iterable[Record]", new: "Record | Iterable[Record]", tolerance: float = 0.05) -> "Comparison":
    """Compares runs or simulations with earlier ones of the same experiments. `tolerance` is the largest relative difference
    that does not matter."""
    texts = [[record.to_json() for record in ([side] if isinstance(side, Record) else side)] for side in (old, new)]
    rows, table = _native.compare_records(*texts, tolerance, WIDTH)
    return Comparison(_shaped(json.loads(rows)), table)


class Comparison(list):
    """The rows of a comparison."""

    def __init__(self, rows, table):
        super().__init__(rows)
        self.table = table

    def __str__(self):
        return self.table

    def _repr_html_(self):
        return f"<pre>{_escaped(self.table)}</pre>"


def _plots(records):
    return {name: Plot(svg) for name, svg in _native.plots([record.to_json() for record in records])}


def _flat(values, before=""):
    flat = {}
    for name, value in values.items():
        if name == "sweep" and not before:
            continue
        if isinstance(value, dict):
            flat.update(_flat(value, f"{before}{name}."))
        elif not isinstance(value, list):
            flat[before + name] = value
    return flat


def _escaped(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
