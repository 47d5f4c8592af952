"""Runs beside their simulation, as `evb twin` makes them."""

import contextlib
import json
import os
import pathlib
import tempfile
from typing import Any, Iterable, Iterator, Mapping

from . import _native
from ._experiment import Experiment, given
from ._program import _records
from ._record import WIDTH, Plot, _escaped, _Part


class Twin(_Part):
    """The runs of a point, held against their simulation, such as `twin.figures[0].simulated`. docs/reference/record.md has all
    names."""

    __slots__ = ()

    def to_json(self) -> str:
        """The record as one line of JSON."""
        return json.dumps(self._values, separators=(",", ":"))

    @property
    def verdict(self) -> str:
        """`agree`, `differ`, or `not comparable`: the worst of the full rate and of the loads."""
        return _native.twin_verdict(self.to_json())

    def summary(self, width: int = WIDTH) -> str:
        """What `evb twin` prints."""
        return _native.twin_summary(self.to_json(), width)

    def __repr__(self):
        return f"<evb.Twin of {self._values.get('experiment')!r}: {self.verdict}>"

    def __str__(self):
        return self.summary()

    def _repr_html_(self):
        return f"<pre>{_escaped(self.summary())}</pre>"


class Twins(list):
    """The points of a file, each a `Twin`."""

    @property
    def verdict(self) -> str:
        """The worst verdict of all points."""
        order = ["agree", "not comparable", "differ"]
        return max((twin.verdict for twin in self), key=order.index, default="not comparable")

    def table(self, width: int = WIDTH) -> str:
        """One row for each point, as `evb twin` prints them."""
        return _native.twin_table([twin.to_json() for twin in self], width)

    def plots(self) -> "dict[str, Plot]":
        """The plots of a sweep by name, as `evb twin --out` writes them."""
        return {name: Plot(svg) for name, svg in _native.twin_plots([twin.to_json() for twin in self])}

    def __str__(self):
        return self.table()

    def _repr_html_(self):
        pictures = "".join(plot.svg for plot in self.plots().values())
        return f"<pre>{_escaped(self.table())}</pre>{pictures}"


def twin(
    experiment: "str | os.PathLike | Experiment",
    network: "str | os.PathLike",
    changes: "Mapping[str, Any] | None" = None,
    load: "Iterable[float]" = (),
    **options,
) -> Twins:
    """Runs and simulates each point of an experiment on this machine, whose costs are in the file `network` of `fit_twin`.

    At each `load`, a part of the full event rate, latencies are compared, too. `options` are those of `evb twin`, such as
    `turns=3`, `out="folder"` and `resume=True`."""
    made = given(experiment, changes)
    options |= {"network": os.fspath(network), "load": list(load) or None}
    with _file_of(made) as (path, sets):
        records = _records("twin", path, *(word for text in sets for word in ("--set", text)), **options)
    return Twins(Twin(record.to_dict()) for record in records)


@contextlib.contextmanager
def _file_of(experiment: Experiment) -> "Iterator[tuple[str, list[str]]]":
    """The file of an experiment, and its changes as `--set` takes them."""
    origin, sets = experiment.source()
    if origin[0] == "file":
        yield origin[1], sets
        return
    # Relative folders start from that of the file.
    _, text, name = origin
    with tempfile.NamedTemporaryFile("w", suffix=".toml", dir=os.path.dirname(name) or ".", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        yield file.name, [*sets, f"name={json.dumps(experiment.name)}"]


def fit_twin(file: "str | os.PathLike", transport: str = "in-process", turns: "int | None" = None) -> pathlib.Path:
    """Finds what event building costs on this machine, over a transport, and writes it into a network file for `twin` and
    `simulate`; returns its path. It takes up to three minutes, in which nothing else should run."""
    _records("twin", fit=os.fspath(file), transport=transport, turns=turns)
    return pathlib.Path(file)
