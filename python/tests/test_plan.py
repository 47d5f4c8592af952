"""Plans of networks from Python."""

import json

import evb
from support import InFolder

EXPERIMENT = """
[network]
preset = "roce-100g-clos"
placement = { readout = 0, builder = 4 }
[trigger]
type = "rate"
rate = "20 kHz"
block = 1
duration = "1 ms"
[readout]
units = 4
source = { type = "fixed", size = "60 kB" }
[builder]
units = 2
[storage]
keep = "none"
"""

PARTS = """
date = "2026-11"
currency = "EUR"
switch = [{ name = "switch", ports = [{ count = 8, rate = "100 Gbit/s" }], cost = 10, power_w = 100, source = "assumed" }]
cable = [{ name = "cable", rate = "100 Gbit/s", reach_m = 100, cost = 0.5, source = "assumed" }]
interface = [{ name = "100G", rate = "100 Gbit/s", cost = 3, source = "assumed" }]
"""

PLAN = """
experiment = "experiment.toml"
parts = "parts.toml"
[search]
triggers = [100, 300]
loads = [1]
"""


class Plans(InFolder):
    def setUp(self):
        super().setUp()
        for name, text in [("experiment", EXPERIMENT), ("parts", PARTS), ("plan", PLAN)]:
            (self.folder / f"{name}.toml").write_text(text)

    def test_a_plan_comes_back_from_its_folder(self):
        plan = evb.plan("plan.toml", out="plan", advice=True)
        self.assertEqual(evb.read_plan("plan"), plan)
        self.assertEqual(evb.read_plan("plan/plan.json"), plan)
        self.assertIn("is the cheapest that is enough", str(plan))
        self.assertIn("what gains 10 %", plan.explanation())
        self.assertEqual(plan.advice[0].changes[0].what, "no change")
        self.assertIn("network", plan.plots())
        self.assertIn("<svg", plan._repr_html_())

    def test_other_records_are_no_plans(self):
        (self.folder / "run.json").write_text(json.dumps({"kind": "run"}))
        with self.assertRaisesRegex(evb.EvbError, "run.json: no record of a plan"):
            evb.read_plan("run.json")
