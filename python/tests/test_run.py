"""Runs from Python."""

import unittest

import numpy as np

import evb
from support import InFolder, experiment


class Runs(InFolder):
    def test_a_run_stores_its_events(self):
        with evb.run(evb.parse(experiment())) as run:
            self.assertEqual(run.wait().events.built, 200)
        self.assertEqual(run.record.outcome, "good")
        self.assertEqual(run.status.state, "ended")
        events = evb.events.open("data")
        self.assertEqual(len(events), 200)
        self.assertIn("log-normal", events.metadata["text"])

    def test_the_end_of_the_block_stops_the_run(self):
        with evb.run(evb.parse(experiment(events=2_000_000_000))) as run:
            next(status for status in run.watch(0.01) if status.ended > 100)
        record = run.record
        self.assertEqual(record.events.built, record.events.triggered)
        self.assertEqual(len(evb.events.open("data")), record.events.built)

    def test_an_exception_in_the_block_aborts_the_run(self):
        with self.assertRaises(ZeroDivisionError), evb.run(evb.parse(experiment(events=2_000_000_000))) as run:
            next(status for status in run.watch(0.01) if status.ended > 100)
            raise ZeroDivisionError
        self.assertEqual(run.status.state, "ended")

    def test_samples_have_the_bytes_that_are_stored(self):
        slow = experiment(events=400, extra="[run]\nsamples = 100").replace("events", 'type = "rate"\nrate = "200 Hz"\nevents')
        samples = []
        with evb.run(evb.parse(slow)) as run:
            for _ in run.watch(0.05):
                samples += run.samples()
        self.assertTrue(samples)
        stored = {event.number: event for event in evb.events.open("data")}
        for sample in samples:
            event = stored[sample.number]
            self.assertEqual([fragment.payload for fragment in sample.fragments], [bytes(f.payload) for f in event.fragments])
            self.assertEqual(sample.size, sum(len(fragment) for fragment in event.fragments))

    def test_histograms_are_those_of_the_stored_bytes(self):
        monitor = '[[monitor]]\nfield = "byte"\ndecoder = { items = [{ name = "byte", type = "u1" }] }\nbins = 10\nrange = [20, 220]\n'
        slow = experiment(events=1500, extra=monitor).replace("events", 'type = "rate"\nrate = "1 kHz"\nevents', 1)
        with evb.run(evb.parse(slow)) as run:
            self.assertTrue(any(run.histograms for _ in run.watch(0.02)))
        for name, histogram in run.record.histograms.items():
            stored = np.concatenate([event[histogram.source] for event in evb.events.open("data")])
            # The last bin of NumPy has its upper end, too.
            counts, edges = np.histogram(stored[stored < 220], bins=10, range=(20, 220))
            self.assertEqual(histogram.counts.tolist(), counts.tolist())
            self.assertEqual(histogram.edges.tolist(), edges.tolist())
            self.assertEqual((histogram.underflow, histogram.overflow), ((stored < 20).sum(), (stored >= 220).sum()))
            self.assertEqual(histogram.to_hist().values(flow=True).tolist(), [histogram.underflow, *counts, histogram.overflow])
            self.assertEqual(run.histograms[name], histogram)

    def test_pause_and_resume(self):
        with evb.run(evb.parse(experiment(events=2_000_000_000))) as run:
            next(status for status in run.watch(0.01) if status.state == "running")
            run.pause()
            next(status for status in run.watch(0.01) if status.state == "paused")
            run.resume()
            next(status for status in run.watch(0.01) if status.state == "running")
        self.assertEqual(run.record.events.lost, 0)

    def test_a_run_that_cannot_begin_says_why(self):
        (self.folder / "file").write_text("")
        text = experiment().replace('directory = "data"', 'directory = "file"')
        with self.assertRaises(evb.EvbError) as raised, evb.run(evb.parse(text)) as run:
            run.wait()
        self.assertIn("file", str(raised.exception))

    def test_what_limits_a_run_is_explained(self):
        run = evb.run(evb.parse(experiment()))
        record = run.wait()
        self.assertTrue(record.explanation())
        self.assertIn("built", record.summary(80))


if __name__ == "__main__":
    unittest.main()
