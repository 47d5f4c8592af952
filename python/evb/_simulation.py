"""Simulations, one or many."""

import concurrent.futures
import contextlib
import hashlib
import json
import math
import multiprocessing
import os
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Callable, Mapping, Sequence

from . import _native
from ._experiment import Experiment, _made, given
from ._progress import Bar
from ._record import Record, Records

# A point whose process was killed is tried this often.
TRIES = 3


def simulate(
    experiment: "str | os.PathLike | Experiment",
    changes: "Mapping[str, Any] | None" = None,
    *,
    point: "int | None" = None,
    threads: "int | None" = None,
    progress: "bool | None" = None,
) -> Record:
    """Simulates an experiment in virtual time. The record is the same on any number of `threads`, by default one for each core.

    Of a sweep `point` says which point; `sweep` simulates all. `progress` shows a bar; by default in a terminal or a notebook,
    after a second."""
    experiment = given(experiment, changes)
    if point is None and len(experiment.points) > 1:
        raise ValueError(f"the experiment has a sweep of {len(experiment.points)} points: choose one with `point`, or use `evb.sweep`")
    with Bar(experiment.name, progress) as bar:
        show = bar.show_part if bar.is_shown else None
        return Record.from_json(_native.simulate(experiment._native, point or 0, threads, show))


def sweep(
    experiment: "str | os.PathLike | Experiment",
    vary: "Mapping[str, Sequence[Any]] | None" = None,
    *,
    changes: "Mapping[str, Any] | None" = None,
    processes: "int | None" = None,
    client: Any = None,
    folder: "str | os.PathLike | None" = None,
    progress: "bool | None" = None,
    done: "Callable[[Record], None] | None" = None,
) -> Records:
    """Simulates every combination of the values in `vary` and of the sweep of the file, and returns the records in order.

        evb.sweep("network.toml", {"workload.load": [0.2, 0.5, 0.8], "network.routing": ["random", "adaptive"]})

    `processes` simulate at once, by default one for each core; with a `client` of Dask the workers of its cluster do. A worker that is
    killed costs only its point, which is simulated again. With a `folder`, that of `evb simulate --out`, each record is stored when it
    is there, and a later sweep of the same experiment takes it from there. `done` is called with each new record."""
    swept, order = _swept(given(experiment, changes), vary or {})
    jobs = [_Job(swept, point, values) for point, values in enumerate(swept.points)]
    with contextlib.ExitStack() as stack:
        known, keep = {}, lambda point, text: None
        if folder is not None:
            store, texts = _native.SweepFolder.open(os.fspath(folder), swept._native)
            stack.callback(store.finish)
            known, keep = {point: Record.from_json(text) for point, text in enumerate(texts) if text is not None}, store.keep
        bar = stack.enter_context(Bar(swept.name, progress, len(jobs)))
        bar.advance(len(known))
        open_jobs = [job for job in jobs if job.point not in known]
        results = _on_dask(open_jobs, client) if client is not None else _on_processes(open_jobs, processes)
        for job, text in results:
            text = job.named(text)
            keep(job.point, text)
            known[job.point] = Record.from_json(text)
            bar.advance(1)
            if done:
                done(known[job.point])
    return Records(known[point] for point in order)


def _swept(experiment, vary):
    """The experiment with what varies in its sweep, and the order of its points in which the sweep of the file runs fastest."""
    if not vary:
        return experiment, range(len(experiment.points))
    # A key that is set is not swept.
    changes = {key: value for key, value in experiment._changes.items() if key not in vary}
    axes = {f"sweep.{json.dumps(key)}": list(values) for key, values in vary.items()}
    swept = _made(experiment._origin, {**changes, **axes})
    points = swept.points
    if missing := [key for key in vary if key not in points[0]]:
        raise ValueError(f"{missing[0]} does not vary: it is a part of what the experiment was changed to")
    combinations = math.prod(len(values) for values in vary.values())
    return swept, [point for first in range(combinations) for point in range(first, len(points), combinations)]


class _Job:
    """A point of a sweep."""

    def __init__(self, swept, point, values):
        self.experiment, self.point, self.values, self.text = swept, point, values, swept.resolved(point)

    @property
    def arguments(self):
        return (self.text,)

    @property
    def key(self):
        """A name for Dask, the same for the same experiment and the same version of evb."""
        text = f"{_native.VERSION}\0{self.point}\0{self.text}"
        return f"evb-{hashlib.sha256(text.encode()).hexdigest()}"

    def named(self, text):
        """The record of the point as JSON, with what the sweep has set."""
        return json.dumps({**json.loads(text), "sweep": self.values})


def _carry_out(text):
    """Simulates one point; it runs in a process of its own."""
    return _native.simulate(_native.Experiment.parse(text, "resolved.toml", []), 0, 1, None)


def _on_processes(jobs, processes):
    """Yields jobs and their records as they come, from a pool of processes.

    A killed process ends its pool. The other jobs of the pool are carried out one after the other, so it is known whose process is
    killed again."""
    waiting, kills = dict.fromkeys(jobs), 0
    count = processes or len(os.sched_getaffinity(0))
    while waiting:
        first = next(iter(waiting))
        yield from _until_killed(waiting, count)
        if not waiting:
            return
        # A pool of one process works in order: what is first now was being carried out.
        kills = kills + 1 if count == 1 and first is next(iter(waiting)) else 0
        if kills == TRIES:
            raise _native.EvbError(
                f"the process of {first.experiment!r}, point {first.point}, was killed {TRIES} times, perhaps for its memory"
            )
        count = 1


def _until_killed(waiting, count):
    """Carries out the jobs that wait, and removes them, until all are done or a process was killed."""
    # A fork would copy the threads of this process in the middle of their work.
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(count, mp_context=context) as pool:
        try:
            futures = {pool.submit(_carry_out, *job.arguments): job for job in waiting}
            for future in concurrent.futures.as_completed(futures):
                text = future.result()
                del waiting[futures[future]]
                yield futures[future], text
        except BrokenProcessPool:
            return
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _on_dask(jobs, client):
    """Yields jobs and their records as they come, from the workers of a cluster. Dask itself tries again."""
    from distributed import as_completed

    futures = {client.submit(_carry_out, *job.arguments, key=job.key, retries=TRIES - 1): job for job in jobs}
    for future in as_completed(list(futures)):
        yield futures[future], future.result()
