"""Event building for physics data acquisition.

    import evb

    record = evb.simulate("experiment.toml")        # in virtual time, on the network of the file
    with evb.run("experiment.toml") as run:         # for real, in threads of this process
        run.wait()
    events = evb.events.open("evb-data/*.evb")      # what the run has stored
    events.awkward().fragments.length

| to | use |
|---|---|
| read an experiment file, and see what is wrong with it | `load`, `parse`, `check` |
| simulate it, or many variants of it | `simulate`, `sweep` |
| run it | `run`, or `Client` for a service of `evb serve` |
| read event files, and write other formats | `events` |
| say what limits a run, or compare runs | `Record.explain`, `compare` |
| benchmark this machine, plan a network, reproduce papers | `bench`, `plan`, `read_plan`, `paper` |
| hold runs of this machine against their simulation | `fit_twin`, `twin` |
| send fragments, decide about events, watch live events | `Source`, `filter`, `monitor` |
| send events and histograms to Kafka or ZeroMQ | `stream` |
"""

import importlib

from ._native import VERSION as __version__
from ._native import EvbError, ExperimentError

# Names, and the modules that they are imported from when they are used first: `import evb` stays fast.
_PLACES = {
    "Experiment": "._experiment", "Problem": "._experiment", "check": "._experiment", "load": "._experiment",
    "parse": "._experiment", "schema": "._experiment",
    "Histogram": "._histogram",
    "NetworkPlan": "._plan", "read_plan": "._plan",
    "Record": "._record", "Records": "._record", "compare": "._record", "read_records": "._record",
    "simulate": "._simulation", "sweep": "._simulation",
    "Run": "._run", "run": "._run",
    "bench": "._program", "paper": "._program", "plan": "._program", "program": "._program",
    "Twin": "._twin", "Twins": "._twin", "fit_twin": "._twin", "twin": "._twin",
    "Client": ".client",
    "Source": "._source",
}
_MODULES = ("client", "events", "filter", "monitor", "stream")

__all__ = ["EvbError", "ExperimentError", "__version__", *_PLACES, *_MODULES]


def __getattr__(name):
    if name in _PLACES:
        value = getattr(importlib.import_module(_PLACES[name], __name__), name)
    elif name in _MODULES:
        value = importlib.import_module("." + name, __name__)
    else:
        raise AttributeError(f"module 'evb' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__():
    return sorted(__all__)
