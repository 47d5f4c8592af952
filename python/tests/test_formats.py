"""`evb events export --format parquet` and `arrow`, opened with the tools of users: pyarrow, pandas and polars.

What they read is compared row by row with what the reader on the page of the event file reads. Half of the event files
come from `evb run`; the others are written here, from the same page, with everything that a run rarely has.

The formats that the package writes are compared in the same way.
"""

import json
import pathlib
import random
import struct
import subprocess
import tempfile
import unittest

import h5py
import pandas
import polars
import pyarrow
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet
import uproot

import evb.events
from support import plain_reader, program

COLUMNS = "event builder source source_name status complete triggered source_time counter mark apart changed payload".split()
STATUSES = ["good", "corrupted", "missing", "oversized", "mismatched"]
MISSING = 2
REASONS = [None, "duplicate", "out_of_sequence", "out_of_step", "early", "late", "mismatch", "disputed", "unplaced"]
REASONS += ["alone", "ambiguous", "out_of_window", "skipped"]
ALL_KINDS = [(form, method) for form in ("parquet", "arrow") for method in ("none", "lz4", "zstd")]
SEED = 20_261_128

RUN = """
name = "formats"
[trigger]
events = 3000
[readout]
units = 3
sources = 6
source = { type = "uniform", min = "50 B", max = "400 B", suppressed = 0.1 }
[builder]
units = 2
""" + "".join(
    f'[[fault]]\nnode = "ru{source // 2}"\naction = "{action}"\nsource = {source}\none_in = 50\n'
    for source, action in [(1, "corrupt"), (2, "lose"), (5, "oversize")]
)


def command(*arguments, good=(0,)):
    """Runs the command and gives its standard error."""
    done = subprocess.run([program(), *map(str, arguments)], capture_output=True, text=True, timeout=300)
    if done.returncode not in good:
        raise AssertionError(f"evb {' '.join(map(str, arguments))}: {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stderr


def rows_of(files):
    """The rows that a table of these files must have, by the reader on the page."""
    read, events, apart = plain_reader(), [], []
    for file in files:
        metadata, found = read(file)
        is_apart = "readout" in metadata
        for event in found:
            rows = [row_of(metadata, is_apart, event, fragment) for fragment in event["fragments"]]
            rows.sort(key=lambda row: row["source"])
            (apart if is_apart else events).append(rows)
    events.sort(key=lambda rows: rows[0]["event"])
    return [row for rows in events + apart for row in rows]


def row_of(metadata, is_apart, event, fragment):
    source, status, names = fragment["source"], fragment["status"], metadata["sources"]
    values = (
        None if is_apart else event["event"],
        None if is_apart else metadata["builder"],
        source,
        names[source] if source < len(names) else None,
        STATUSES[status],
        None if is_apart else event["complete"],
        event["time"] or None,
        event["source_time"] or None,
        fragment["counter"],
        fragment["mark"],
        REASONS[fragment["reason"]],
        False,
        None if status == MISSING else fragment["payload"],
    )
    return dict(zip(COLUMNS, values, strict=True))


def by_pyarrow(path, form):
    table = pyarrow.parquet.read_table(path) if form == "parquet" else pyarrow.ipc.open_file(path).read_all()
    return in_nanoseconds(table)


def by_feather(path, form):
    return in_nanoseconds(pyarrow.feather.read_table(path)) if form == "arrow" else None


def in_nanoseconds(table):
    """The rows, with times as numbers: Python has no time in nanoseconds."""
    at = table.schema.get_field_index("triggered")
    return table.set_column(at, "triggered", table["triggered"].cast(pyarrow.int64())).to_pylist()


def by_pandas(path, form):
    read = pandas.read_parquet if form == "parquet" else pandas.read_feather
    frame = read(path, dtype_backend="pyarrow")
    frame["triggered"] = frame["triggered"].astype("int64[pyarrow]")
    columns = {name: frame[name].astype(object) for name in frame.columns}
    rows = zip(*(column.where(column.notna(), None) for column in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def by_polars(path, form):
    frame = polars.read_parquet(path) if form == "parquet" else polars.read_ipc(path)
    return frame.with_columns(polars.col("triggered").dt.timestamp("ns")).to_dicts()


def plain(row):
    """A row as formats without nulls have it: status, counter, mark and payload."""
    counter, mark = row["counter"], row["mark"]
    known = (counter is not None, mark is not None)
    return (STATUSES.index(row["status"]), row["source"], *known, counter or 0, mark or 0, row["payload"] or b"")


def by_h5py(path):
    with h5py.File(path) as file:
        columns = [file[name][:].tolist() for name in ("status", "source", "has_counter", "has_mark", "counter", "mark")]
        payload, start, length = (file[name][:] for name in ("payload", "payload_start", "payload_bytes"))
        payloads = [payload[first : first + size].tobytes() for first, size in zip(start.tolist(), length.tolist())]
        return list(zip(*columns, payloads, strict=True))


def by_uproot(path):
    tree = uproot.open(path)["fragments"]
    names = ("status", "source", "has_counter", "has_mark", "counter", "mark")
    payloads = [bytes(payload) for payload in tree["payload"].array().to_list()]
    return list(zip(*(tree[name].array().to_list() for name in names), payloads, strict=True))


TOOLS = {"pyarrow": by_pyarrow, "feather": by_feather, "pandas": by_pandas, "polars": by_polars}


class Formats(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def differences(self, files, kinds):
        """Exports the files in these ways, and compares every row that every tool reads."""
        expected = rows_of(files)
        for form, method in kinds:
            path = self.folder / f"table-{method}.{form}"
            command("events", "export", *files, "--format", form, "--compression", method, "-o", path)
            for name, tool in TOOLS.items():
                found = tool(path, form)
                if found is None:
                    continue
                self.assertEqual(len(found), len(expected), (form, method, name))
                checksums = [row.pop("checksum") for row in found]
                wrong = [(at, one, two) for at, (one, two) in enumerate(zip(found, expected)) if one != two]
                self.assertEqual(len(wrong), 0, f"{form} {method} {name}: the first is {wrong[:1]}")
                self.check_checksums(found, checksums)
        return expected

    def check_checksums(self, rows, checksums):
        """The checksum of a good payload is that of its bytes: of some, because Python is slow."""
        step = max(1, len(rows) // 500)
        for row, checksum in list(zip(rows, checksums))[::step]:
            if row["status"] == "good":
                self.assertEqual(checksum, crc32c(row["payload"]))

    def test_events_of_a_run(self):
        (self.folder / "run.toml").write_text(RUN + f'[storage]\ndirectory = "{self.folder}"\n')
        command("run", self.folder / "run.toml", "-q", good=(0, 1))
        files = sorted(self.folder.glob("*.evb"))
        rows = self.differences(files, ALL_KINDS)
        self.assertEqual(len({row["event"] for row in rows}), 3000)
        self.assertLessEqual({"good", "corrupted", "missing", "oversized"}, {row["status"] for row in rows})

    def test_ten_thousand_events_of_every_kind(self):
        files = write_events(self.folder, 10_000)
        rows = self.differences(files, [("parquet", "none"), ("arrow", "zstd")])
        self.assertEqual(len({row["event"] for row in rows} - {None}), 10_000)
        self.assertEqual({row["status"] for row in rows}, set(STATUSES))
        self.assertEqual({row["apart"] for row in rows}, set(REASONS))
        self.assertTrue(any(row["payload"] == b"" for row in rows) and any(row["payload"] is None for row in rows))

    def test_what_the_package_writes(self):
        files = write_events(self.folder, 10_000)
        expected = [{**row, "changed": False} for row in rows_of(files)]
        events = evb.events.open(files)
        parts = [(events, [row for row in expected if row["event"] is not None], "events")]
        parts.append((events.apart, [row for row in expected if row["event"] is None], "apart"))
        for part, expected, name in parts:
            for form in ("parquet", "arrow"):
                part.export(self.folder / f"{name}.{form}")
                found = by_pyarrow(self.folder / f"{name}.{form}", form)
                checksums = [row.pop("checksum") for row in found]
                self.assertEqual([row for row, other in zip(found, expected, strict=True) if row != other], [], (name, form))
                self.check_checksums(found, checksums)
            for form, read in (("h5", by_h5py), ("root", by_uproot)):
                part.export(self.folder / f"{name}.{form}")
                wanted = [plain(row) for row in expected]
                found = read(self.folder / f"{name}.{form}")
                self.assertEqual([row for row, other in zip(found, wanted, strict=True) if row != other][:1], [], (name, form))

    def test_trigger_records_of_dune(self):
        files = write_events(self.folder, 300)
        events = evb.events.open(files)
        events.export(self.folder / "dune.h5", "dune", detector=3, fragment_type=12, fragment_name="WIBEth")
        rows = [row for row in rows_of(files) if row["event"] is not None]
        with h5py.File(self.folder / "dune.h5") as file:
            self.assertEqual((file.attrs["filelayout_version"], file.attrs["record_type"], file.attrs["run_number"]), (4, "TriggerRecord", 7))
            self.assertEqual(len(file), 300)
            for row in rows:
                raw = file[f"TriggerRecord{row['event']:05}.0000/RawData"]
                ticks = (row["triggered"] or 0) // 16
                record = bytes(raw["TR_Builder_0x00000000_TriggerRecordHeader"][:])
                marker, version, number, time, components, run = struct.unpack_from("<2I3QI", record)
                self.assertEqual((marker, version, number, time, run), (0x33334444, 4, row["event"], ticks, 7))
                self.assertEqual((components, len(record)), (5, 64 + 5 * 32))
                self.assertEqual(struct.unpack_from("<2HI", record, 56), (2, 4, 0))
                data = bytes(raw[f"Detector_Readout_0x{row['source']:08x}_WIBEth"][:])
                fields = struct.unpack_from("<2I5Q3I4HI", data)
                self.assertEqual(fields[:5], (0x11112222, 5, len(data), row["event"], ticks))
                bits = {"missing": 1, "oversized": 2}.get(row["status"], 0)
                self.assertEqual(fields[7:], (7, bits, 12, 0, 3, 2, 1, row["source"]))
                self.assertEqual(data[72:], row["payload"] or b"")

    def test_tables_say_of_which_run_they_are(self):
        files = write_events(self.folder, 10)
        metadata, _ = plain_reader()(files[0])
        for form in ("parquet", "arrow"):
            path = self.folder / f"table.{form}"
            command("events", "export", *files, "--format", form, "-o", path)
            is_parquet = form == "parquet"
            schema = pyarrow.parquet.read_schema(path) if is_parquet else pyarrow.ipc.open_file(path).schema
            for name in ("run", "experiment", "text", "version", "start", "comment"):
                self.assertEqual(schema.metadata[f"evb.{name}".encode()].decode(), str(metadata[name]), (form, name))

    def test_a_payload_that_changed_on_disk_is_marked(self):
        files = write_events(self.folder, 100)
        data = files[0].read_bytes()
        read = plain_reader()(files[0])[1]
        payload = next(f["payload"] for event in read for f in event["fragments"] if len(f["payload"]) > 30)
        at = data.index(payload)
        files[0].write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        for form in ("parquet", "arrow"):
            path = self.folder / f"table.{form}"
            said = command("events", "export", *files, "--format", form, "-o", path, good=(1,))
            self.assertIn("1 events are damaged", said)
            found, expected = by_polars(path, form), rows_of(files)
            changed = [row for row in found if row["changed"]]
            self.assertEqual(len(changed), 1)
            self.assertEqual(changed[0]["payload"][1:], payload[1:])
            for one, two in zip(found, expected, strict=True):
                self.assertEqual(one["payload"], two["payload"])


def write_events(folder, events):
    """Writes the events of two builders, in several files, and two files of fragments that belong to no event."""
    chance, files = random.Random(SEED), []
    for builder in range(2):
        ids = [id for id in range(1, events + 1) if id % 2 == builder]
        # Events are only roughly in the order of their ids.
        for at in range(0, len(ids) - 3, 7):
            ids[at], ids[at + 3] = ids[at + 3], ids[at]
        size = len(ids) // 3 + 1
        for number, first in enumerate(range(0, len(ids), size)):
            metadata = {"builder": builder, "file": number}
            written = [(id, [fragment(chance, source) for source in range(5)]) for id in ids[first : first + size]]
            files.append(write_file(folder / f"w-7-b{builder}-{number:04}.evb", metadata, written, chance))
    for unit in range(2):
        reasons = [(reason, [fragment(chance, unit, reason)]) for reason in range(1, len(REASONS))]
        files.append(write_file(folder / f"w-7-ru{unit}.apart.evb", {"readout": unit}, reasons, chance))
    return files


def fragment(chance, source, reason=0):
    """Source, status, payload, counter, mark and reason of a fragment."""
    status = chance.choices(range(5), [90, 3, 3, 2, 2])[0]
    size = 0 if status == MISSING or chance.random() < 0.1 else chance.randrange(1, 60)
    counter = chance.getrandbits(64) if source > 0 else None
    mark = chance.getrandbits(32) if source > 2 else None
    return source, status, chance.randbytes(size), counter, mark, reason


def write_file(path, metadata, events, chance):
    """Writes an event file as the page says: without index and footer, as one that was not closed."""
    common = {"run": 7, "seed": 2**64 - 1, "version": "0.1.0", "start": 1_790_000_000_123_456_789, "comment": "ä, \"b\""}
    common |= {"experiment": "w", "text": "name = \"w\"\n", "sources": ["ru0", "ru1", "ru1", "ru2:masked"]}
    text = json.dumps(common | metadata).encode()
    header = struct.pack("<8sIII", b"\x89EVB\r\n\x1a\n", 2, len(text), crc32c(text))
    tag = crc32c(header)
    records = [record(tag, chance, *event) for event in events]
    path.write_bytes(header + struct.pack("<I", tag) + padded(text) + b"".join(records))
    return path


def record(tag, chance, id, fragments):
    complete = all(status == 0 for _, status, *_ in fragments) and not fragments[0][5]
    heads, trailer, payloads = b"", b"", b""
    for source, status, payload, counter, mark, reason in fragments:
        sum = crc32c(payload)
        heads += struct.pack("<HBxIII", source, status, len(payload), sum ^ (status == 1), sum)
        known = (counter is not None) | (mark is not None) << 1
        trailer += struct.pack("<QIBBxx", counter or 0, mark or 0, known, reason)
        payloads += padded(payload)
    time = 0 if chance.random() < 0.2 else 1_790_000_000_123_456_789 + id
    trailer = struct.pack("<QQ", time, chance.choice((0, 2**64 - id))) + trailer
    length = 32 + len(heads) + len(payloads) + 8 + len(trailer)
    head = struct.pack("<QQIHBx", id, length, tag, len(fragments), complete) + heads
    checksum = crc32c(head)
    head = b"\xe5EVT" + struct.pack("<I", checksum) + head
    return head + payloads + b"\xe5EXT" + struct.pack("<I", crc32c(trailer) ^ checksum) + trailer


def padded(data):
    return data + bytes(-len(data) % 8)


def table_of_crc32c():
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


TABLE = table_of_crc32c()


def crc32c(data):
    value = 0xFFFFFFFF
    for byte in data:
        value = TABLE[(value ^ byte) & 0xFF] ^ value >> 8
    return value ^ 0xFFFFFFFF


if __name__ == "__main__":
    unittest.main()
