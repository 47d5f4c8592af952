"""What the tests share."""

import io
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
EVENT_FILE_PAGE = ROOT / "docs/reference/event-file.md"


def program():
    """The `evb` program: of the environment variable EVB, or of the wheel."""
    import evb

    return str(evb.program())


class InFolder(unittest.TestCase):
    """A test in an empty folder."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        before = os.getcwd()
        os.chdir(folder.name)
        self.addCleanup(os.chdir, before)
        self.folder = pathlib.Path(folder.name)


def evb_command(*arguments):
    """Runs the command; an error has what it printed."""
    done = subprocess.run([program(), *map(str, arguments)], capture_output=True, text=True, timeout=120)
    if done.returncode not in (0, 1, 3):
        raise AssertionError(f"evb {' '.join(map(str, arguments))}: {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def plain_reader():
    """The reader on the page of the event file."""
    text = EVENT_FILE_PAGE.read_text()
    code = text.split("```python\n")[1].split("```")[0]
    # It leaves its file to the interpreter, which would warn.
    names = {"open": lambda path, _: io.BytesIO(pathlib.Path(path).read_bytes())}
    exec(code, names)
    return names["read"]


def experiment(units=3, events=200, extra=""):
    """An experiment that stores events."""
    return f"""
name = "small"
[trigger]
events = {events}
[readout]
units = {units}
source = {{ type = "log-normal", mean = "500 B", rms = "300 B" }}
[builder]
units = 2
[storage]
directory = "data"
{extra}
"""
