"""Plans of networks, as `evb plan` makes them."""

import json
import os
import pathlib

from . import _native
from ._record import WIDTH, Plot, _escaped, _Part


class NetworkPlan(_Part):
    """The record of a plan, such as `plan.front[0].carries`. docs/reference/record.md has all names."""

    __slots__ = ()

    def to_json(self) -> str:
        """The record as one line of JSON."""
        return json.dumps(self._values, separators=(",", ":"))

    def summary(self, width: int = WIDTH) -> str:
        """What `evb plan` prints: the networks that are enough, and why cheaper ones are not."""
        return _native.plan_summary(self.to_json(), width)

    def explanation(self, width: int = WIDTH) -> str:
        """What to change and what the result hangs on, as `evb explain` prints it."""
        return _native.plan_explanation(self.to_json(), width)

    def plots(self) -> "dict[str, Plot]":
        """Its pictures: `front`, what the cheapest networks carry, and `network`, the diagram of the cheapest one that is enough."""
        return {name: Plot(svg) for name, svg in _native.plan_plots(self.to_json())}

    def __repr__(self):
        return f"<evb.NetworkPlan of {self._values.get('plan')!r}: {len(self._values.get('candidates', []))} networks>"

    def __str__(self):
        return self.summary()

    def _repr_html_(self):
        pictures = "".join(plot.svg for plot in self.plots().values())
        return f"<pre>{_escaped(self.summary())}</pre>{pictures}"


def read_plan(path: "str | os.PathLike") -> NetworkPlan:
    """Reads a stored plan: `plan.json`, or the folder of `evb plan --out` that has it."""
    path = pathlib.Path(path)
    file = path / "plan.json" if path.is_dir() else path
    values = json.loads(file.read_text(encoding="utf-8"))
    if not isinstance(values, dict) or values.get("kind") != "planning":
        raise _native.EvbError(f"{file}: no record of a plan\nhint: give plan.json of `evb plan --out`")
    return NetworkPlan(values)
