"""A histogram on its way out."""

from typing import Any, NamedTuple

import numpy as np

from .. import _native


class Histogram(NamedTuple):
    """Counts, and the edges of each axis."""

    counts: np.ndarray
    axes: "list[tuple[str, np.ndarray]]"

    @classmethod
    def of(cls, histogram: Any) -> "Histogram":
        """One of hist or boost-histogram, or the tuple of counts and edges that NumPy returns."""
        axes = getattr(histogram, "axes", [])
        try:
            # `to_numpy` of hist moves the last edge a little.
            parts = (histogram.values(), [axis.edges for axis in axes]) if axes else histogram
            counts, edges = np.ascontiguousarray(parts[0]), _edges(parts[1:])
        except (AttributeError, TypeError, IndexError, KeyError, ValueError):
            raise _not_one(histogram) from None
        if counts.dtype.kind not in "iuf" or counts.shape != tuple(len(axis) - 1 for axis in edges):
            raise _not_one(histogram)
        names = [getattr(axis, "name", "") or getattr(axis, "label", "") for axis in axes]
        names = [str(name or f"axis{index}") for index, name in enumerate(names or [""] * len(edges))]
        return cls(counts, list(zip(names, edges)))


def _edges(parts):
    """The edges of each axis; those of more than two axes come as one list."""
    if len(parts) == 1 and isinstance(parts[0], (list, tuple)) and np.ndim(parts[0][0]) == 1:
        parts = parts[0]
    return [np.ascontiguousarray(axis, "f8") for axis in parts]


def _not_one(histogram):
    return _native.EvbError(
        f"{type(histogram).__name__} is no histogram\nhint: give one of hist or boost-histogram, or what numpy.histogram returns"
    )
