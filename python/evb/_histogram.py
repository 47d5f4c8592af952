"""Histograms that builder units fill while they build events."""

from typing import TYPE_CHECKING

from ._record import _Part

if TYPE_CHECKING:
    import numpy as np


class Histogram(_Part):
    """A histogram of `[[monitor]]`, such as `record.histograms["charge of ru3"]`. Its names are those of docs/reference/record.md:
    `entries`, `underflow`, `overflow`, `unfit`, `missing` and so on."""

    __slots__ = ()

    @property
    def counts(self) -> "np.ndarray":
        """Entries of each bin."""
        import numpy as np

        return np.array(self._values["bins"], "i8")

    @property
    def edges(self) -> "np.ndarray":
        """Ends of the bins, one more than there are bins."""
        import numpy as np

        return np.linspace(*self._values["range"], len(self._values["bins"]) + 1)

    @property
    def mean(self) -> "float | None":
        """Mean of the values inside the range; None without any."""
        return self._values.get("mean")

    def to_hist(self):
        """A histogram of the package `hist`, with what is below and above the range."""
        import hist

        low, high = self._values["range"]
        name = self._values["field"]
        whole = self._values.get("channels", False)
        axis = hist.axis.Integer(int(low), int(high), name=name) if whole else hist.axis.Regular(len(self._values["bins"]), low, high, name=name)
        filled = hist.Hist(axis, storage=hist.storage.Int64(), name=self._values["name"])
        filled.view(flow=True)[...] = [self._values["underflow"], *self._values["bins"], self._values["overflow"]]
        return filled

    def __repr__(self):
        return f"<evb.Histogram {self._values['name']!r}: {self._values['entries']} entries>"


def by_name(values) -> "dict[str, Histogram]":
    """The histograms of a list by their names."""
    return {one["name"]: Histogram(one) for one in values}
