"""Simulations and sweeps from Python."""

import json
import os
import signal
import threading
import unittest

import pyarrow.parquet

import evb
import evb._simulation
from support import InFolder, evb_command, experiment

SWEEP = '[sweep]\n"builder.units" = [1, 2]\n'


def die():
    os.kill(os.getpid(), signal.SIGKILL)


class Deadly:
    """Kills the process that receives it."""

    def __reduce__(self):
        return die, ()


class Simulations(InFolder):
    def test_the_record_is_that_of_the_command(self):
        (self.folder / "small.toml").write_text(experiment())
        of_command = json.loads(evb_command("simulate", "small.toml", "--json", "--quiet"))
        record = evb.simulate("small.toml")
        self.assertEqual(record.to_dict()["events"], of_command["events"])
        self.assertEqual(record.latency_us.to_dict(), of_command["latency_us"])
        self.assertEqual(record.outcome, "good")
        self.assertIn("good: all 200 events", str(record))

    def test_a_sweep_needs_its_own_function(self):
        swept = evb.parse(experiment(extra=SWEEP))
        with self.assertRaisesRegex(ValueError, "evb.sweep"):
            evb.simulate(swept)
        self.assertEqual(evb.simulate(swept, point=1).builder_units, 2)

    def test_a_record_comes_back_from_a_file(self):
        records = evb.Records([evb.simulate(evb.parse(experiment()))])
        records.save("records.jsonl")
        again = evb.read_records("records.jsonl")
        self.assertEqual(again[0], records[0])
        self.assertEqual({row.change_percent for row in evb.compare(records, again)}, {0.0})
        self.assertIn("<svg", records[0]._repr_html_())

    def test_an_unknown_name_tells_the_names(self):
        record = evb.simulate(evb.parse(experiment()))
        with self.assertRaisesRegex(AttributeError, "events"):
            record.evnts

    def test_what_limits_is_explained(self):
        record = evb.simulate(evb.parse(experiment()))
        self.assertTrue(record.explain()[0]["why"])

    def test_ctrl_c_ends_a_simulation(self):
        # A shell makes the programs that it starts in the background ignore the signal.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        endless = evb.parse(experiment(events=2_000_000_000))
        began = threading.Event()

        def interrupt():
            began.wait()
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        calls = []

        def progress(*now):
            calls.append(now)
            began.set()

        with self.assertRaises(KeyboardInterrupt):
            evb._native.simulate(endless._native, 0, 1, progress)
        thread.join()
        self.assertTrue(calls)

    def test_an_error_of_the_progress_ends_a_simulation(self):
        endless = evb.parse(experiment(events=2_000_000_000))

        def progress(*_):
            raise ZeroDivisionError

        with self.assertRaises(ZeroDivisionError):
            evb._native.simulate(endless._native, 0, 1, progress)


class Sweeps(InFolder):
    def test_points_and_variants_come_in_order(self):
        records = evb.sweep(evb.parse(experiment(extra=SWEEP)), {"trigger.events": [10, 20]}, processes=2)
        found = [(record.events.built, record.builder_units) for record in records]
        self.assertEqual(found, [(10, 1), (10, 2), (20, 1), (20, 2)])
        rows = records.rows()
        self.assertEqual(rows[2]["trigger.events"], "20")
        self.assertEqual(rows[3]["builder.units"], "2")
        self.assertEqual(rows[3]["events.built"], 20)

    def test_tables(self):
        records = evb.sweep(evb.parse(experiment(extra=SWEEP)), processes=1)
        self.assertEqual(list(records.to_pandas()["events.built"]), [200, 200])
        self.assertEqual(records.to_arrow().column("events.built").to_pylist(), [200, 200])
        records.save("sweep.parquet")
        self.assertEqual(pyarrow.parquet.read_table("sweep.parquet").column("builder_units").to_pylist(), [1, 2])

    def test_a_sweep_continues_where_it_was(self):
        swept = evb.parse(experiment(extra=SWEEP))
        first = evb.sweep(swept, processes=1, folder="results")
        # A line that was cut off, as by a power failure, costs one point.
        text = (self.folder / "results/records.jsonl").read_text()
        (self.folder / "results/records.jsonl").write_text(text[:-40])
        new = []
        again = evb.sweep(swept, processes=1, folder="results", done=new.append)
        self.assertEqual(len(new), 1)
        self.assertEqual([record.events for record in again], [record.events for record in first])
        evb.sweep(swept, processes=1, folder="results", done=lambda record: self.fail("nothing was open"))
        evb.sweep(swept, {"builder.units": [1, 2, 3]}, processes=1, folder="results", done=new.append)
        self.assertEqual([record.builder_units for record in new], [2, 3])
        with self.assertRaisesRegex(evb.EvbError, "another experiment: `trigger.events` is 200 in it and 5 in this one"):
            evb.sweep(swept, changes={"trigger.events": 5}, processes=1, folder="results")

    def test_the_folder_is_that_of_the_command(self):
        (self.folder / "small.toml").write_text(experiment(extra=SWEEP))
        vary = {"trigger.events": [10, 20]}
        evb.sweep("small.toml", vary, processes=2, folder="python")
        options = ["--set", 'sweep."trigger.events"=[10, 20]', "--quiet"]
        evb_command("simulate", "small.toml", *options, "--out", "command")
        evb_command("sweep", "draw", "python")
        here, there = self.folder / "python", self.folder / "command"
        self.assertEqual(*(sorted(path.name for path in folder.iterdir()) for folder in (here, there)))
        for name in ("resolved.toml", "points.csv", "links.csv", "points.parquet"):
            self.assertEqual((here / name).read_bytes(), (there / name).read_bytes(), name)
        # Either goes on with what the other has begun.
        lines = (there / "records.jsonl").read_text().splitlines(keepends=True)
        (there / "records.jsonl").write_text("".join(lines[:2]))
        new = []
        evb.sweep("small.toml", vary, processes=1, folder="command", done=new.append)
        self.assertEqual([record.sweep["trigger.events"] for record in new], ["10", "20"])
        (here / "records.jsonl").write_text("".join(lines[:3]))
        evb_command("simulate", "small.toml", *options, "--out", "python", "--resume")
        self.assertEqual((here / "points.csv").read_bytes(), (there / "points.csv").read_bytes())

    def test_what_is_set_does_not_vary(self):
        changed = evb.parse(experiment(), {"builder": {"units": 1}, "trigger.events": 7})
        records = evb.sweep(changed, {"trigger.events": [10, 20]}, processes=1)
        self.assertEqual([record.events.built for record in records], [10, 20])
        with self.assertRaisesRegex(ValueError, "builder.units does not vary"):
            evb.sweep(changed, {"builder.units": [1, 2]}, processes=1)

    def test_a_killed_process_costs_only_its_points(self):
        swept = evb.parse(experiment(events=20000, extra='[sweep]\n"builder.units" = [1, 2, 3, 4, 5, 6]\n'))
        killed = []

        def kill(_):
            if not killed:
                import multiprocessing

                child = multiprocessing.active_children()[0]
                killed.append(child.pid)
                child.kill()

        records = evb.sweep(swept, processes=2, done=kill)
        self.assertEqual(len(killed), 1)
        self.assertEqual([record.builder_units for record in records], [1, 2, 3, 4, 5, 6])

    def test_a_point_that_always_dies_is_named(self):
        class DeadlyJob(evb._simulation._Job):
            arguments = property(lambda job: (Deadly(),))

        deadly = DeadlyJob(evb.parse(experiment().replace("small", "deadly")), 0, {})
        others = [evb._simulation._Job(evb.parse(experiment(events=events)), 0, {}) for events in (10, 20)]
        done = []
        with self.assertRaisesRegex(evb.EvbError, "deadly"):
            done.extend(job for job, _ in evb._simulation._on_processes([others[0], deadly, others[1]], 1))
        with self.assertRaisesRegex(evb.EvbError, "deadly"):
            for job, _ in evb._simulation._on_processes([others[0], deadly, others[1]], 2):
                done.append(job)
        self.assertNotIn(deadly, done)

    def test_a_cluster_gives_the_same_records(self):
        from distributed import Client, LocalCluster

        swept = evb.parse(experiment(extra='[sweep]\n"builder.units" = [1, 2, 3, 4, 5, 6]\n'))
        here = evb.sweep(swept, processes=1)
        killed, calls = [], []
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:

            def kill(_):
                calls.append(None)
                if not killed:
                    worker = next(iter(cluster.workers.values()))
                    killed.append(worker.process.process.pid)
                    os.kill(worker.process.process.pid, signal.SIGKILL)

            there = evb.sweep(swept, client=client, done=kill, folder="cluster")
        self.assertEqual((len(killed), len(calls)), (1, 6))
        self.assertEqual([record.latency_us for record in there], [record.latency_us for record in here])
        evb.sweep(swept, processes=1, folder="cluster", done=lambda record: self.fail("nothing was open"))

    def test_an_error_of_a_point_is_told(self):
        wrong = evb.parse(experiment().replace('type = "log-normal", mean = "500 B", rms = "300 B"', 'type = "tcp", listen = "127.0.0.1:0"'))
        with self.assertRaises(evb.EvbError):
            evb.sweep(wrong, processes=1)


if __name__ == "__main__":
    unittest.main()
