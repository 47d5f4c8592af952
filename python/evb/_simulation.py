"""Simulations, one or many."""

import concurrent.futures
import hashlib
import itertools
import json
import multiprocessing
import os
import pathlib
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Callable, Mapping, Sequence

from . import _native
from ._experiment import Experiment, given
from ._progress import Bar
from ._record import Record, Records

# A point whose process was killed is tried this often.
TRIES = 3
# The file of the records in the folder of a sweep.
STORE = "records.jsonl"


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
    killed costs only its point, which is simulated again. With a `folder` each record is stored when it is there, and a later
    sweep takes it from there, as long as experiment and version of evb are the same. `done` is called with each new record."""
    experiment = given(experiment, changes)
    vary = vary or {}
    jobs = [_Job(variant, point, vary) for variant in _variants(experiment, vary) for point in range(len(variant.points))]
    store = _Store(folder)
    with Bar(experiment.name, progress, len(jobs)) as bar:
        records = {job.key: record for job in jobs if (record := store.get(job.key))}
        bar.advance(sum(job.key in records for job in jobs))
        open_jobs = list({job.key: job for job in jobs if job.key not in records}.values())
        results = _on_dask(open_jobs, client) if client is not None else _on_processes(open_jobs, processes)
        for job, text in results:
            record = job.record(text)
            records[job.key] = record
            store.put(job.key, record)
            bar.advance(1)
            if done:
                done(record)
    return Records(records[job.key] for job in jobs)


def _variants(experiment, vary):
    for values in itertools.product(*vary.values()):
        yield experiment.changed(dict(zip(vary, values))) if vary else experiment


class _Job:
    """A point of a variant. Its key is the same for the same experiment and the same version of evb."""

    def __init__(self, experiment, point, varied):
        self.experiment, self.point, self.varied = experiment, point, varied
        text = f"{_native.VERSION}\0{experiment.resolved(point)}"
        self.key = hashlib.sha256(text.encode()).hexdigest()

    @property
    def arguments(self):
        return self.experiment._origin, self.experiment._changes, self.point

    def record(self, text):
        """The record, with what was varied among what was swept."""
        values = json.loads(text)
        values["sweep"] = {**{key: str(self.experiment._changes[key]) for key in self.varied}, **values.get("sweep", {})}
        return Record(values)


def _carry_out(origin, changes, point):
    """Simulates one point; it runs in a process of its own."""
    from ._experiment import _made

    return _native.simulate(_made(origin, changes)._native, point, 1, None)


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

    futures = {client.submit(_carry_out, *job.arguments, key=f"evb-{job.key}", retries=TRIES - 1): job for job in jobs}
    for future in as_completed(list(futures)):
        yield futures[future], future.result()


class _Store:
    """The records of a sweep in a folder, one on a line with its key."""

    def __init__(self, folder):
        self.file, self.known = None, {}
        if folder is None:
            return
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.file = folder / STORE
        if self.file.exists():
            self.known = dict(self._entries())

    def _entries(self):
        whole = 0
        for number, line in enumerate(self.file.read_bytes().splitlines(keepends=True), 1):
            if not line.endswith(b"\n"):
                # The last line of a sweep that was killed. Its point is simulated again.
                os.truncate(self.file, whole)
                return
            whole += len(line)
            try:
                entry = json.loads(line)
                yield entry["key"], Record(entry["record"])
            except (ValueError, KeyError, TypeError):
                raise _native.EvbError(f"{self.file}, line {number}: not a record of a sweep") from None

    def get(self, key):
        return self.known.get(key)

    def put(self, key, record):
        if self.file is None:
            return
        line = json.dumps({"key": key, "record": record.to_dict()}) + "\n"
        # One write: another sweep may store in the same folder.
        with open(self.file, "ab", buffering=0) as output:
            output.write(line.encode())
