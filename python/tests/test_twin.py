"""Runs beside their simulation from Python."""

import evb
from support import InFolder

EXPERIMENT = """
name = "small"
[trigger]
events = 2000
[readout]
units = 2
source = { type = "fixed", size = "1 kB" }
[builder]
units = 2
[storage]
keep = "none"
"""

# A machine that was a thousand times slower when it was fitted, so that no runs are comparable.
MACHINE = """
[network]
preset = "ideal"
fitted_to = "in-process"
[network.cpu]
cores = 2
computers = "one"
messages = "memory"
poll = "100 ns"
readout.fragment = "300 ns"
builder.fragment = "300 ns"
fit = { error = 10, reference = "500 Hz" }
"""


class Twins(InFolder):
    def setUp(self):
        super().setUp()
        (self.folder / "experiment.toml").write_text(EXPERIMENT)
        (self.folder / "machine.toml").write_text(MACHINE)

    def test_a_file_has_one_record_with_its_loads(self):
        twins = evb.twin("experiment.toml", "machine.toml", turns=1, load=[0.2, 0.5])
        (twin,) = twins
        self.assertEqual((twin.verdict, twins.verdict), ("not comparable", "not comparable"))
        self.assertEqual(twin.figures[0].figure, "event rate, Hz")
        self.assertEqual([load.load for load in twin.loads], [0.2, 0.5])
        self.assertIn("at 20 %: not comparable", str(twin))
        self.assertEqual(twins.plots(), {})

    def test_each_point_of_a_sweep_has_a_record(self):
        swept = evb.parse(EXPERIMENT, {"sweep": {"readout.source.size": ["1 kB", "4 kB"]}})
        twins = evb.twin(swept, "machine.toml", turns=1, out="out")
        self.assertEqual([twin.sweep["readout.source.size"] for twin in twins], ["1 kB", "4 kB"])
        self.assertIn("not comparable: 2 of 2 points", str(twins))
        self.assertEqual(sorted(twins.plots()), ["event-rate", "latency"])
        self.assertTrue((self.folder / "out/event-rate.svg").exists())

    def test_costs_of_another_transport_are_an_error(self):
        with self.assertRaisesRegex(evb.EvbError, "fitted to in-process, and this experiment runs over tcp"):
            evb.twin("experiment.toml", "machine.toml", {"transport.type": "tcp"}, turns=1)
