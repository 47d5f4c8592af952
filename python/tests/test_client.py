"""The client of a service, and the programs of the package."""

import re
import subprocess
import time
import unittest

import evb
from support import InFolder, evb_command, experiment, program


SIZES = '[[monitor]]\nfield = "size"\nbins = 20\nrange = [0, 5000]\n'


class Services(InFolder):
    def setUp(self):
        super().setUp()
        (self.folder / "small.toml").write_text(experiment(events=100, extra="[run]\nsamples = 10\n" + SIZES))
        words = [program(), "serve", "small.toml", "--http", "127.0.0.1:0"]
        service = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
        self.addCleanup(service.communicate)
        self.addCleanup(service.terminate)
        self.place = re.search(r"http://\S+", service.stderr.readline())[0]
        self.service = evb.Client(self.place)

    def until(self, is_so):
        """The first status that is so."""
        for _ in range(2000):
            status = self.service.status()
            if is_so(status):
                return status
            time.sleep(0.01)
        self.fail(f"this was waited for in vain: {status}")

    def test_runs_by_command(self):
        self.service.start(type="cosmics", comment="from Python")
        self.until(lambda status: status["state"] == "stopped" and self.service.runs())
        run = self.service.run(1)
        self.assertEqual((run["type"], run["comment"]), ("cosmics", "from Python"))
        self.assertEqual(run["record"]["events"]["built"], 100)
        self.assertEqual(evb.events.open("data").metadata["comment"], "from Python")
        sizes = self.service.histograms()
        self.assertEqual(sizes["size of ru2"].fragments, 100)
        self.assertEqual(sizes["size of ru0"].counts.tolist(), run["record"]["histograms"][0]["bins"])

    def test_refusals_have_reason_and_hint(self):
        with self.assertRaisesRegex(evb.EvbError, "(?s).+"):
            self.service.pause()
        with self.assertRaisesRegex(evb.EvbError, "token"):
            evb.Client(self.service.address, "wrong").status()
        with self.assertRaisesRegex(evb.EvbError, "evb serve"):
            evb.Client("http://127.0.0.1:1", "token").status()

    def test_the_experiment_is_read_and_replaced(self):
        text = self.service.experiment()
        self.service.load(text.replace("events = 100", "events = 7"))
        self.assertIn("events = 7", self.service.experiment())
        with self.assertRaisesRegex(evb.EvbError, "triger"):
            self.service.load("[triger]")


class Programs(InFolder):
    def test_benchmarks(self):
        rows = evb.bench("ping-pong", transport="threads", sizes="8B", time="50ms", launches=1)
        self.assertEqual({row.kind for row in rows} - {"benchmark", "parameters"}, set())

    def test_what_the_program_refuses_is_an_error(self):
        with self.assertRaisesRegex(evb.EvbError, "ping-pang"):
            evb.bench("ping-pang")

    def test_the_program_has_the_version_of_the_package(self):
        self.assertIn(evb.__version__, evb_command("--version"))


if __name__ == "__main__":
    unittest.main()
