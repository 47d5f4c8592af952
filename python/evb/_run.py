"""Runs for real, in threads of this process."""

import json
import os
from typing import Any, Iterator, Mapping, NamedTuple

from . import _native
from ._experiment import Experiment, given
from ._histogram import Histogram, by_name
from ._record import Record
from .monitor import Event, event_from


class Status(NamedTuple):
    """A run at one moment."""

    state: str
    """The state of run control, such as `running`; `ended` after the run."""
    seconds: float
    """Time since the start."""
    triggered: int
    """Events triggered so far."""
    ended: int
    """Events ended so far: built, incomplete or rejected."""
    incomplete: int
    """Ended events with a fragment missing or bad."""
    bytes: int
    """Payload bytes that builders have received."""


class Run:
    """A run, from its start. `run` makes it.

    At the end of a `with` block the run is stopped: it takes no more triggers, builds what was triggered, and closes its files.
    An exception in the block aborts it."""

    def __init__(self, experiment, point):
        self._native = _native.Run(experiment._native, point)

    @property
    def status(self) -> Status:
        """The run now."""
        return Status(*self._native.progress())

    @property
    def record(self) -> "Record | None":
        """The record of the run; None before its end. EvbError if the run could not begin."""
        text = self._native.record()
        return Record.from_json(text) if text else None

    def watch(self, every: float = 0.5) -> "Iterator[Status]":
        """Gives the status every so many seconds until the run has ended."""
        while not self._native.wait(every):
            yield self.status
        yield self.status

    def samples(self) -> "list[Event]":
        """The sampled events since the last call, at most the 1000 latest. `run.samples` of the experiment says how many are
        taken per second."""
        return [event_from(json.loads(text)) for text in self._native.samples()]

    @property
    def histograms(self) -> "dict[str, Histogram]":
        """The histograms of `[[monitor]]` by name: of the run so far, at most a second old, or of its record. Empty in its first
        second. A run in two stages has them at its end."""
        return by_name(json.loads(self._native.histograms()))

    def notes(self) -> "list[str]":
        """What the run had to say since the last call."""
        return self._native.notes()

    def pause(self) -> None:
        """Turns triggers away until `resume`."""
        self._native.command("pause")

    def resume(self) -> None:
        """Takes triggers again."""
        self._native.command("resume")

    def stop(self) -> None:
        """Takes no more triggers and builds what was triggered."""
        self._native.command("stop")

    def abort(self) -> None:
        """Ends the run without waiting for open events, which are lost. What was stored stays valid."""
        self._native.command("abort")

    def wait(self, seconds: "float | None" = None) -> "Record | None":
        """Waits for the end of the run, at most for so long, and returns its record; None if the run goes on."""
        return self.record if self._native.wait(seconds) else None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is None:
            self.stop()
        else:
            self.abort()
        # A node may be unable to end; what it takes is bounded by the limits of the experiment file.
        self._native.wait()
        if kind is None:
            # Raises the error of a run that could not begin.
            self._native.record()

    def __repr__(self):
        state, seconds, _, ended, _, _ = self._native.progress()
        return f"<evb.Run {state}, {ended} events in {seconds:.1f} s>"


def run(
    experiment: "str | os.PathLike | Experiment",
    changes: "Mapping[str, Any] | None" = None,
    *,
    point: int = 0,
) -> Run:
    """Begins a run for real, with the nodes as threads of this process.

        with evb.run("experiment.toml") as run:
            for status in run.watch():
                print(status.ended)
        print(run.record)

    Nodes in processes and on other machines are those of `evb run` and of `evb serve`, which `Client` commands."""
    return Run(given(experiment, changes), point)
