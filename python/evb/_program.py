"""What the `evb` program does: benchmarks, plans of networks, and the reproduction of papers."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig

from . import _native
from ._plan import NetworkPlan
from ._record import _shaped


def program() -> pathlib.Path:
    """The `evb` program: the one of the environment variable EVB, of this package, or of the PATH."""
    name = os.environ.get("EVB")
    beside = [pathlib.Path(folder) / "evb" for folder in (sysconfig.get_path("scripts"), pathlib.Path(sys.executable).parent)]
    found = name or next((str(path) for path in beside if path.exists()), None) or shutil.which("evb")
    if found is None:
        raise _native.EvbError("there is no `evb` program\nhint: install the wheel of evb, or set EVB to the program")
    return pathlib.Path(found)


def bench(*patterns: str, **options) -> list:
    """Benchmarks of message layers on this machine: a list of records. `patterns` and `options` are those of `evb bench`, such
    as `evb.bench("ping-pong", transport="shm,tcp", sizes="8B,1kB")`."""
    return _records("bench", *patterns, **options)


def paper(*slugs: str, **options) -> list:
    """Reproduces published values: a list of records, ours beside theirs. `slugs` and `options` are those of `evb paper`."""
    return _records("paper", *slugs, **options)


def plan(file: "str | os.PathLike", **options) -> NetworkPlan:
    """Searches the cheapest network for a planning file: the record of the plan. `options` are those of `evb plan`, such as
    `out="folder"`, `resume=True` and `advice=True`."""
    (record,) = _records("plan", str(file), **options)
    return NetworkPlan(record.to_dict())


def _records(command, *arguments, **options):
    words = [str(program()), command, *arguments, "--json", "--progress=none"]
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            words.append(flag)
        elif value is not None and value is not False:
            words.append(f"{flag}={','.join(map(str, value)) if isinstance(value, (list, tuple)) else value}")
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        output, errors = process.communicate()
    except BaseException:
        process.terminate()
        process.communicate()
        raise
    # 1 and 3 are verdicts about good records; only 2 says that there are none.
    if process.returncode not in (0, 1, 3):
        raise _native.EvbError(errors.strip().removeprefix("error: ") or f"evb {command} ended with {process.returncode}")
    return [_shaped(json.loads(line)) for line in output.splitlines() if line.startswith("{")]
