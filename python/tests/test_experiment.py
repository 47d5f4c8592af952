"""Experiment files from Python."""

import ast
import pathlib
import pickle
import subprocess
import sys
import unittest

import evb
from support import InFolder, experiment


class Experiments(InFolder):
    def test_problems_have_places_and_hints(self):
        with self.assertRaises(evb.ExperimentError) as raised:
            evb.parse("[triger]\nevents = 1\n")
        first = raised.exception.problems[0]
        self.assertEqual((first.file, first.line, first.column), ("experiment.toml", 1, 2))
        self.assertIn("did you mean `trigger`", first.hint)
        self.assertIn("unknown key", str(raised.exception))
        self.assertIsInstance(raised.exception, evb.EvbError)

    def test_a_missing_file_is_named(self):
        with self.assertRaises(evb.ExperimentError) as raised:
            evb.load("absent.toml")
        self.assertIn("absent.toml", str(raised.exception))

    def test_changes_replace_values_of_the_file(self):
        (self.folder / "small.toml").write_text(experiment())
        changed = evb.load("small.toml", {"trigger.events": 7, "readout.source": {"type": "fixed", "size": "1 kB"}})
        self.assertIn("events = 7", changed.resolved())
        again = changed.changed({"builder.units": 4})
        self.assertEqual(again.memory["builder unit"][0], 4)
        self.assertIn("events = 7", again.resolved())

    def test_a_wrong_change_is_named(self):
        with self.assertRaises(evb.ExperimentError) as raised:
            evb.parse(experiment(), {"trigger.evens": 1})
        self.assertEqual(raised.exception.problems[0].file, "--set")

    def test_points_of_a_sweep(self):
        swept = evb.parse(experiment(extra='[sweep]\n"builder.units" = [1, 2]\n'))
        self.assertEqual(swept.points, [{"builder.units": "1"}, {"builder.units": "2"}])
        self.assertIn("units = 2", swept.resolved(1))
        with self.assertRaises(IndexError):
            swept.resolved(2)

    def test_experiments_go_to_other_processes(self):
        experiment_here = evb.parse(experiment(), {"trigger.events": 9})
        there = pickle.loads(pickle.dumps(experiment_here))
        self.assertEqual(there.resolved(), experiment_here.resolved())

    def test_the_schema_knows_the_tables(self):
        self.assertIn("trigger", evb.schema()["properties"])

    def test_html_is_escaped(self):
        self.assertIn("&lt;b&gt;", evb.parse(experiment().replace("small", "<b>"))._repr_html_())


class Imports(unittest.TestCase):
    def test_import_takes_no_numpy(self):
        """Importing NumPy alone takes longer than all of evb should."""
        code = "import sys, evb; sys.exit('numpy' in sys.modules)"
        self.assertEqual(subprocess.run([sys.executable, "-c", code], check=False).returncode, 0)

    def test_every_name_can_be_imported(self):
        for name in evb.__all__:
            if name != "Source":
                self.assertTrue(hasattr(evb, name), name)

    def test_editors_see_every_name(self):
        """The stubs name what the package gives, and what the native part has."""
        stubs = pathlib.Path(evb.__file__).with_name("__init__.pyi").read_text()
        for name in evb.__all__:
            self.assertRegex(stubs, rf"\b{name}\b")
        native = ast.parse(pathlib.Path(evb.__file__).with_name("_native.pyi").read_text())
        described = {node.name for node in native.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))} | {"VERSION"}
        self.assertEqual(described, {name for name in dir(evb._native) if not name.startswith("_")})


if __name__ == "__main__":
    unittest.main()
