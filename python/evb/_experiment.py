"""Experiment files."""

import json
import os
from typing import Any, Mapping, NamedTuple

from . import _native


class Problem(NamedTuple):
    """A problem of an experiment."""

    message: str
    """What is wrong."""
    hint: str
    """How to mend it."""
    file: "str | None"
    """The file, or `--set` for a change; None if there is no place."""
    line: "int | None"
    """The line, counted from 1."""
    column: "int | None"
    """The column, counted from 1."""


def _problems(error):
    return [Problem(*problem) for problem in error.args[1]] if len(error.args) > 1 else []


# The text of the exception is its first argument, the problems are the second.
_native.ExperimentError.__str__ = lambda error: str(error.args[0]) if error.args else ""
_native.ExperimentError.problems = property(_problems)


class Experiment:
    """An experiment file, checked and resolved. `load` and `parse` make it."""

    def __init__(self, native, origin, changes):
        self._native, self._origin, self._changes = native, origin, changes

    @property
    def name(self) -> str:
        """The name of the experiment."""
        return self._native.name

    @property
    def points(self) -> "list[dict[str, str]]":
        """What each point of its sweep sets; one empty dictionary without a sweep."""
        return [dict(point) for point in self._native.points]

    @property
    def notes(self) -> "list[str]":
        """What could surprise, such as memory that this machine does not have."""
        return self._native.notes()

    @property
    def memory(self) -> "dict[str, tuple[int, int]]":
        """The number of nodes of each kind, and the most memory in bytes that one of them may need."""
        return {name: (count, size) for name, count, size in self._native.memory()}

    def resolved(self, point: "int | None" = None) -> str:
        """The experiment as a file with every default filled in; only one point of the sweep if `point` is given."""
        text = self._native.resolved(point)
        if text is None:
            raise IndexError(f"the sweep has no point {point}")
        return text

    def changed(self, changes: "Mapping[str, Any]") -> "Experiment":
        """The same experiment with other values, such as `{"trigger.events": 1000}`."""
        return _made(self._origin, {**self._changes, **changes})

    def source(self) -> "tuple[tuple[str, ...], list[str]]":
        """Where it is from, `("file", path)` or `("text", text, name)`, and its changes as `evb --set` takes them."""
        return self._origin, _texts(self._changes)

    def __repr__(self):
        points = len(self._native.points)
        return f"<evb.Experiment {self.name!r}{f', {points} points' if points > 1 else ''}>"

    def __reduce__(self):
        return _made, (self._origin, self._changes)

    def _repr_html_(self):
        memory = "".join(
            f"<tr><td>{name}</td><td>{count}</td><td>{size / 2**20:.1f} MiB</td></tr>"
            for name, (count, size) in self.memory.items()
        )
        notes = "".join(f"<li>{_escaped(note)}</li>" for note in self.notes)
        return (f"<b>{_escaped(self.name)}</b><table><tr><th>node</th><th>count</th><th>memory of one, at most</th></tr>{memory}"
                f"</table><ul>{notes}</ul><details><summary>resolved</summary><pre>{_escaped(self.resolved())}</pre></details>")


def load(file: "str | os.PathLike", changes: "Mapping[str, Any] | None" = None) -> Experiment:
    """Reads an experiment file. `changes` are values instead of those of the file, by their keys.

    ExperimentError has every problem with its place and a hint."""
    return _made(("file", os.fspath(file)), dict(changes or {}))


def parse(text: str, changes: "Mapping[str, Any] | None" = None, name: str = "experiment.toml") -> Experiment:
    """Reads the text of an experiment file. Relative folders start from the folder in `name`."""
    return _made(("text", text, name), dict(changes or {}))


def check(experiment: "str | os.PathLike | Experiment", changes: "Mapping[str, Any] | None" = None) -> Experiment:
    """Checks an experiment and returns it. `notes`, `memory` and `resolved` tell about it; ExperimentError says what is wrong."""
    return given(experiment, changes)


def schema() -> dict:
    """The JSON Schema of experiment files."""
    return json.loads(_native.schema())


def given(experiment, changes=None) -> Experiment:
    """An experiment that is given as a file or as an object."""
    if isinstance(experiment, Experiment):
        return experiment.changed(changes) if changes else experiment
    return load(experiment, changes)


def _made(origin, changes):
    if origin[0] == "file":
        native = _native.Experiment.load(origin[1], _texts(changes))
    else:
        native = _native.Experiment.parse(origin[1], origin[2], _texts(changes))
    return Experiment(native, origin, changes)


def _texts(changes):
    return [f"{key}={_value(value)}" for key, value in changes.items()]


def _value(value):
    """A value as it is written in the file."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_value(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_value, value)) + "]"
    # Numbers of NumPy become those of Python.
    return json.dumps(value.item() if hasattr(value, "item") else value, ensure_ascii=False)


def _escaped(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
