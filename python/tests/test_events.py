"""Event files from Python, compared with the plain reader on the page of the format."""

import gc
import pathlib
import unittest

import awkward as ak
import numpy as np

import evb
from evb.events import Decoder, Status, read_decoder
from support import InFolder, ROOT, evb_command, experiment, plain_reader

CORPUS = ROOT / "crates/data/events/tests/corpus"


def plain(files):
    """The events of these files by number, from the plain reader."""
    events = {}
    for file in files:
        for event in plain_reader()(str(file))[1]:
            events.setdefault(event["event"], event)
    return [events[number] for number in sorted(events)]


class Stored(InFolder):
    """Events of a run with faults."""

    def setUp(self):
        super().setUp()
        faults = '[[fault]]\nnode = "ru1"\naction = "oversize"\none_in = 20\n'
        # Of the four sources the first unit has two, and so can miss one.
        faults += '[[fault]]\nnode = "ru0"\naction = "lose"\none_in = 20\nsource = 1\n'
        (self.folder / "small.toml").write_text(experiment(events=500, extra=faults).replace("units = 3", "units = 3\nsources = 4"))
        evb_command("run", "small.toml", "--quiet")
        self.files = sorted(self.folder.glob("data/*.evb"))
        self.events = evb.events.open("data")
        self.expected = plain(self.files)

    def test_every_byte_is_that_of_the_plain_reader(self):
        self.assertEqual(len(self.files), 2)
        self.assertEqual(self.events.event.tolist(), [event["event"] for event in self.expected])
        array = self.events.awkward()
        self.assertEqual(set(self.events.fragments.status), {Status.GOOD, Status.MISSING, Status.OVERSIZED})
        for found, seen, event in zip(self.events, array, self.expected):
            self.assertEqual(found.complete, event["complete"])
            self.assertEqual(found.triggered or 0, event["time"])
            for fragment, shown, expected in zip(found.fragments, seen.fragments, event["fragments"], strict=True):
                self.assertEqual(fragment.status, expected["status"])
                if fragment.status == Status.MISSING:
                    self.assertEqual((fragment.payload, shown.payload, expected["payload"]), (None, None, b""))
                else:
                    self.assertEqual(bytes(fragment.payload), expected["payload"])
                    self.assertEqual(bytes(shown.payload.to_numpy()), expected["payload"])
                by_index = found[expected["source"]]
                self.assertEqual(b"" if by_index is None else bytes(by_index), expected["payload"])
                self.assertEqual((fragment.counter, fragment.mark), (expected["counter"], expected["mark"]))
                self.assertEqual(shown.counter, expected["counter"])

    def test_payloads_are_views_of_the_files(self):
        content, _ = self.events._content
        lists = self.events.awkward().layout.content("fragments").content.content("payload").content
        self.assertTrue(np.shares_memory(lists.content.data, content))
        self.assertTrue(np.shares_memory(self.events[0][0], content))
        self.assertFalse(content.flags.writeable)

    def test_views_outlive_their_events(self):
        expected = self.expected[7]["fragments"][0]["payload"]
        payload = self.events[7][0]
        for file in self.files:
            file.unlink()
        del self.events
        gc.collect()
        self.assertEqual(bytes(payload), expected)

    def test_parts_are_events_as_well(self):
        for index in (slice(10, 20), slice(None, None, -3), self.events.size > 1500, np.array([5, 400, 5])):
            part = self.events[index]
            expected = np.array(self.expected, dtype=object)[index]
            self.assertEqual(part.event.tolist(), [event["event"] for event in expected])
            payloads = [[bytes(b"" if fragment.payload is None else fragment.payload) for fragment in event.fragments] for event in part]
            self.assertEqual(payloads, [[fragment["payload"] for fragment in event["fragments"]] for event in expected])
            self.assertEqual([bytes(p or b"") for e in part.awkward().fragments.payload.to_list() for p in e], sum(payloads, []))
            self.assertEqual(part.size.tolist(), [sum(map(len, event)) for event in payloads])
            again = part[:2]
            self.assertEqual(again.decode(3, "u1").to_list(), [list(event[3]) for event in payloads[:2]])

    def test_changed_bytes_are_found(self):
        self.assertFalse(self.events.changed().any())
        fragment = 2 * 4 + 1
        offset = int(self.events.fragments._columns["offset"][fragment])
        with open(self.events.files[self.events._columns["file"][2]], "r+b") as file:
            file.seek(offset)
            byte = file.read(1)
            file.seek(offset)
            file.write(bytes([byte[0] ^ 1]))
        changed = evb.events.open("data").changed()
        self.assertEqual(np.flatnonzero(changed).tolist(), [fragment])
        self.assertEqual(self.events[1:4].changed().tolist(), [False] * 5 + [True] + [False] * 6)

    def test_what_is_not_there_is_named(self):
        with self.assertRaisesRegex(FileNotFoundError, "absent"):
            evb.events.open("absent/*.evb")
        with self.assertRaisesRegex(evb.EvbError, "absent.evb"):
            evb.events.open("absent.evb")
        with self.assertRaisesRegex(evb.EvbError, "ru0.+ru2"):
            self.events.decode("ru7", "u1")
        self.assertIsNone(self.events[0]["ru7"])
        with self.assertRaises(IndexError):
            self.events[500]

    def test_a_file_that_is_cut_off_gives_its_whole_events(self):
        data = self.files[0].read_bytes()
        pathlib.Path("cut.evb").write_bytes(data[: len(data) // 2])
        cut = evb.events.open("cut.evb")
        self.assertLessEqual(set(cut.event), set(evb.events.open(self.files[0]).event))
        self.assertGreater(len(cut), 50)

    def test_compressed_files_are_the_same_events(self):
        compression = 'storage.compression="zstd"'
        evb_command("run", "small.toml", "--quiet", "--set", compression, "--set", 'storage.directory="packed"')
        packed = evb.events.open("packed")
        self.assertEqual(pathlib.Path(packed.files[0]).read_bytes()[8:12], b"evbz")
        self.assertEqual(packed.event.tolist(), self.events.event.tolist())
        self.assertFalse(packed.changed().any())
        alike = ak.almost_equal(packed.awkward().fragments.payload, self.events.awkward().fragments.payload)
        self.assertTrue(alike)

    def test_other_formats_are_written_whole_or_not_at_all(self):
        self.events.export("run.h5")
        with self.assertRaises(FileExistsError):
            self.events.export("run.h5")
        with self.assertRaisesRegex(ValueError, "hdf5"):
            self.events.export("run.xyz")
        with self.assertRaises(TypeError):
            self.events.export("run.root", compresion=1)
        self.assertEqual([file.name for file in self.folder.glob("run*")], ["run.h5"])


class Growing(InFolder):
    def test_a_run_is_followed(self):
        self.follow("none")

    def test_a_run_that_compresses_is_followed(self):
        self.follow("zstd")

    def follow(self, compression):
        text = experiment(events=2_000_000_000, extra=f'compression = "{compression}"')
        text = text.replace("events", 'type = "rate"\nrate = "400 Hz"\nevents')
        follower = evb.events.follow("data")
        self.assertEqual(len(follower.read()), 0)
        seen, reads_with_events, payloads = [], 0, []
        with evb.run(evb.parse(text)) as run:
            while reads_with_events < 3:
                self.assertIsNone(run.wait(0.02))
                part = follower.read()
                reads_with_events += len(part) > 0
                seen += part.event.tolist()
                payloads += [bytes(event[0]) for event in part]
        part = follower.read()
        seen += part.event.tolist()
        payloads += [bytes(event[0]) for event in part]
        events = evb.events.open("data")
        self.assertEqual(sorted(seen), events.event.tolist())
        self.assertEqual(dict(zip(seen, payloads)), {event.number: bytes(event[0]) for event in events})
        self.assertEqual(len(follower.read()), 0)


class Faulty(unittest.TestCase):
    """The corpus of event files with every case."""

    def test_every_file_of_the_corpus_opens_or_says_why_not(self):
        for folder in ("event-file", "version-1"):
            for file in sorted((CORPUS / folder).glob("*.evb")):
                try:
                    events = evb.events.open(file)
                except evb.EvbError:
                    continue
                for event in list(events) + list(events.apart):
                    for fragment in event.fragments:
                        self.assertEqual(fragment.payload is None, fragment.status == Status.MISSING)
                self.assertEqual(len(events.awkward()), len(events))
                events.to_arrow().validate(full=True)


class Decoding(InFolder):
    """Payloads of known content: frames of a board with hits of four bytes. One has half a hit more."""

    HEADER = [("magic", "V2"), ("length", "<u2"), ("board", "<u2")]
    HIT = [("channel", "<u2"), ("charge", "<u2")]
    HITS = [[(n, 100 + n + hit) for hit in range(2 * n)] for n in range(5)]

    def setUp(self):
        super().setUp()
        frames = b""
        for number, hits in enumerate(self.HITS):
            body = number.to_bytes(2, "little") + np.array(hits, self.HIT).tobytes() + b"\x01\x02" * (number == 3)
            frames += b"\xca\xfe" + (len(body) + 4).to_bytes(2, "little") + body
        (self.folder / "board.raw").write_bytes(frames)
        text = """
name = "board"
[trigger]
type = "data"
[readout]
units = 1
source = { type = "file", file = "board.raw", framing = { magic = "CA FE", length = { at = 2, bits = 16 } } }
[builder]
units = 1
[storage]
directory = "data"
"""
        (self.folder / "board.toml").write_text(text)
        evb_command("run", "board.toml", "--quiet")
        self.events = evb.events.open("data")

    def test_header_and_items(self):
        decoder = Decoder(self.HEADER, self.HIT)
        with self.assertRaisesRegex(evb.EvbError, "event 4, source ru0: a payload of 32 bytes is not 6 bytes of header"):
            self.events.decode("ru0", decoder)
        found = self.events.decode("ru0", decoder, strict=False)
        self.assertEqual(found.header.board.to_list(), [0, 1, 2, None, 4])
        hits = [None if event is None else [(hit["channel"], hit["charge"]) for hit in event] for event in found["items"].to_list()]
        self.assertEqual(hits, [*self.HITS[:3], None, self.HITS[4]])
        self.assertEqual(int(ak.sum(found["items"].charge[2])), sum(charge for _, charge in self.HITS[2]))

    def test_a_trailer(self):
        found = self.events.decode(0, Decoder([("head", "V4")], self.HIT, [("last", "<u2")]), strict=False)
        self.assertEqual(len(found[4]["items"]), 8)
        self.assertEqual(found[4].trailer["last"], self.HITS[4][-1][1])

    def test_sizes_that_lie_anywhere(self):
        found = self.events.decode(0, Decoder("V6", "u1"))
        self.assertEqual(bytes(found[1]["items"].to_numpy()), np.array(self.HITS[1], self.HIT).tobytes())
        threes = self.events.decode(0, Decoder("V5", [("low", ">u2"), ("high", "u1")]), strict=False)
        self.assertEqual([event is None for event in threes.to_list()], [True, False, True, False, False])
        self.assertEqual(threes[1]["items"].low[1], int.from_bytes(np.array(self.HITS[1], self.HIT).tobytes()[2:4], "big"))

    def test_a_description_in_toml(self):
        (self.folder / "board-decoder.toml").write_text(
            'header = [{ name = "magic", type = "u1", count = 2 }, { name = "length", type = "u2" }, { name = "board", type = "u2" }]\n'
            'items = [{ name = "channel", type = "u2" }, { name = "charge", type = "u2" }]\n'
        )
        self.assertEqual(read_decoder("board-decoder.toml").header.itemsize, 6)
        found = self.events.decode("ru0", "board-decoder.toml", strict=False)
        self.assertEqual(found["items"].charge[1].to_list(), [101, 102])
        self.assertEqual(found.header.magic[0].to_list(), [0xCA, 0xFE])

    def test_wrong_descriptions_are_named(self):
        for text, expected in [("item = []", "unknown key 'item'"), ("byte_order = 'middle'", "byte_order"), ("items = [{ name = 'x' }]", "items"),
                               ("items = [{ name = 'x', type = 'u3' }]", "items"), ("items", "wrong.toml")]:
            (self.folder / "wrong.toml").write_text(text)
            with self.assertRaisesRegex(evb.EvbError, expected):
                read_decoder("wrong.toml")


if __name__ == "__main__":
    unittest.main()
