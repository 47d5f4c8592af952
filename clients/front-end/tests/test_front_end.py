"""Tests of the front-end kit: in C, in Python, and with evb, whose command is in the environment variable EVB.

    EVB=target/debug/evb python3 -m unittest discover -s clients/front-end/tests

They need a C compiler and the headers of Python.
"""

import array
import contextlib
import gc
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import unittest
import warnings

FOLDER = pathlib.Path(__file__).resolve().parent.parent
EVB = os.environ.get("EVB") and pathlib.Path(os.environ["EVB"]).resolve()
HEADER = struct.Struct("<4sBBHQIIII")
# What takes longer hangs, in seconds.
LIMIT = 60


def setUpModule():
    """Compiles the kit; the module for Python is in a folder of its own, as behind an installation."""
    global WORK, evb_front_end
    WORK = pathlib.Path(tempfile.mkdtemp(prefix="evb-front-end-"))
    unittest.addModuleCleanup(shutil.rmtree, WORK)
    library = FOLDER / "evb_front_end.c"
    for name in ("tests/kit.c", "tests/board.c", "example.c", "bench.c"):
        compile_c(pathlib.Path(name).stem, FOLDER / name, library, f"-I{FOLDER}")
    shutil.copytree(FOLDER / "python/evb_front_end", WORK / "python/evb_front_end")
    native = FOLDER / "python/evb_front_end/native.c"
    headers = sysconfig.get_paths()["include"]
    stable = ["-DPy_LIMITED_API=0x030B0000"] if sys.version_info >= (3, 11) else []
    compile_c("python/evb_front_end/_native.so", native, library, "-shared", "-fPIC", f"-I{headers}", *stable)
    sys.path.insert(0, str(WORK / "python"))
    import evb_front_end


def compile_c(target, *arguments):
    compiler = os.environ.get("CC", "cc")
    options = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Werror", "-pthread"]
    subprocess.run([compiler, *options, "-o", WORK / target, *arguments], check=True, timeout=LIMIT)


def payload_of(event, source):
    """The payloads of board.c."""
    length = event * 37 % 3000 if event % 50 else 100000
    start = (event * 7 + source * 31) % 256
    return (bytes(range(256)) * 400)[start : start + length]


def listen():
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(LIMIT)
    return listener, "127.0.0.1:%d" % listener.getsockname()[1]


class Receiver(threading.Thread):
    """Reads one connection to its end."""

    def __init__(self, listener):
        super().__init__(daemon=True)
        self.listener, self.stream = listener, bytearray()
        self.start()

    def run(self):
        connection, _ = self.listener.accept()
        with connection:
            connection.settimeout(LIMIT)
            while part := connection.recv(1 << 16):
                self.stream += part

    def frames(self):
        """The frames: flags, source, counter, mark and payload."""
        self.join(LIMIT)
        frames, at = [], 0
        while at < len(self.stream):
            magic, version, flags, source, counter, length, checksum, mark, _ = HEADER.unpack_from(self.stream, at)
            payload = bytes(self.stream[at + HEADER.size : at + HEADER.size + length])
            assert (magic, version, len(payload)) == (b"evbF", 1, length)
            assert checksum == evb_front_end.crc32c(payload)
            frames.append((flags, source, counter, mark, payload))
            at += HEADER.size + length
        return frames


class InC(unittest.TestCase):
    def test_kit(self):
        subprocess.run([WORK / "kit"], check=True, timeout=LIMIT, stdout=subprocess.DEVNULL)

    def test_bench(self):
        output = subprocess.run([WORK / "bench", "1000", "2000"], check=True, timeout=LIMIT, capture_output=True, text=True)
        self.assertRegex(output.stdout, r"bytes +median +\d+\.\d+ GB/s, minimum")


class InPython(unittest.TestCase):
    def setUp(self):
        self.listener, self.address = listen()
        self.addCleanup(self.listener.close)

    def test_bench(self):
        command = [sys.executable, FOLDER / "bench.py", "1000", "2000"]
        path = {**os.environ, "PYTHONPATH": str(WORK / "python")}
        output = subprocess.run(command, env=path, check=True, timeout=LIMIT, capture_output=True, text=True)
        self.assertRegex(output.stdout, r"bytes +median +\d+\.\d+ GB/s, minimum")

    def test_checksum(self):
        self.assertEqual(evb_front_end.crc32c(b"123456789"), 0xE3069283)
        self.assertEqual(evb_front_end.crc32c(b"56789", evb_front_end.crc32c(b"1234")), 0xE3069283)

    def test_frames(self):
        receiver = Receiver(self.listener)
        numbers = array.array("I", range(10000))
        with evb_front_end.FrontEnd(self.address, source=7) as board:
            board.send(1, b"abc")
            board.send(2, memoryview(b"abcdef")[2:], mark=5)
            board.send(3, numbers, damaged=True)
            board.send(2**64 - 1, [b"ab", bytearray(b"cd"), memoryview(b"ef"), b""], mark=2**32 - 1, resynchronised=True)
            board.send(4, ())
            board.end_of_run()
            counts = board.statistics()
        self.assertEqual(
            receiver.frames(),
            [
                (0, 7, 1, 0, b"abc"),
                (8, 7, 2, 5, b"cdef"),
                (4, 7, 3, 0, numbers.tobytes()),
                (8 | 2, 7, 2**64 - 1, 2**32 - 1, b"abcdef"),
                (0, 7, 4, 0, b""),
                (8 | 1, 7, 4, 5, b""),
            ],
        )
        self.assertEqual((counts.fragments, counts.bytes), (5, 3 + 4 + 40000 + 6))
        self.assertEqual(board.statistics(), counts)

    def test_numpy(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("NumPy is not installed")
        receiver = Receiver(self.listener)
        samples = numpy.arange(30000, dtype="<u2").reshape(100, 300)
        with evb_front_end.FrontEnd(self.address) as board:
            board.send(1, samples)
            with self.assertRaises((BufferError, ValueError)):
                board.send(2, samples[:, ::2])
        self.assertEqual([frame[4] for frame in receiver.frames()], [samples.tobytes()])

    def test_a_receiver_that_does_not_read(self):
        board = evb_front_end.FrontEnd(self.address, timeout=0)
        with self.assertRaisesRegex(BlockingIOError, f"{self.address}: the call would have to wait"):
            for counter in range(1, 10**6):
                board.send(counter, bytes(100000))
        slow = evb_front_end.FrontEnd(self.address, timeout=0.15)
        with self.assertRaisesRegex(TimeoutError, "the receiver took nothing within the timeout"):
            for counter in range(1, 10**6):
                slow.send(counter, bytes(100000))
        with self.assertRaises((TimeoutError, BlockingIOError)):
            slow.close(0.01)
        accepted = board.statistics().fragments
        receiver = Receiver(self.listener)
        while True:
            with contextlib.suppress(BlockingIOError):
                board.flush()
                break
            time.sleep(0.001)
        board.close(10)
        self.assertEqual([frame[2] for frame in receiver.frames()], list(range(1, accepted + 1)))

    def wait_for_wait(self, board):
        """Waits until a call of another thread waits for the receiver."""
        end = time.monotonic() + LIMIT
        while board.statistics().waits == 0:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.001)

    def test_other_threads_go_on_while_a_call_waits(self):
        board = evb_front_end.FrontEnd(self.address, timeout=LIMIT)
        sender = threading.Thread(target=lambda: [board.send(counter, bytes(10**6)) for counter in range(30)], daemon=True)
        sender.start()
        self.wait_for_wait(board)
        with self.assertRaisesRegex(RuntimeError, "another thread is in a call"):
            board.close()
        receiver = Receiver(self.listener)
        sender.join(LIMIT)
        board.close()
        self.assertEqual(len(receiver.frames()), 30)

    def test_a_signal_ends_a_wait(self):
        def interrupt(number, frame):
            raise InterruptedError

        before = signal.signal(signal.SIGUSR1, interrupt)
        self.addCleanup(signal.signal, signal.SIGUSR1, before)
        board = evb_front_end.FrontEnd(self.address, timeout=LIMIT)

        def disturb():
            self.wait_for_wait(board)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)

        threading.Thread(target=disturb, daemon=True).start()
        with self.assertRaises(InterruptedError):
            for counter in range(1000):
                board.send(counter, bytes(10**6))
        with self.assertRaises(OSError):
            board.close(0)

    def test_bad_input(self):
        open_board = evb_front_end.FrontEnd
        for address in ("nonsense", "127.0.0.1", "127.0.0.1:0", "a" * 300 + ":1"):
            with self.assertRaisesRegex(ValueError, "HOST:PORT"):
                open_board(address)
        for options in ({"source": -1}, {"source": 65536}, {"timeout": -1}, {"timeout": float("nan")}, {"buffer_bytes": -1},
                        {"linger": 1e5}, {"connect_timeout": float("inf")}):
            with self.assertRaises(ValueError, msg=options):
                open_board(self.address, **options)
        with self.assertRaises(TypeError):
            open_board(b"127.0.0.1:1")
        with open_board(self.address) as board:
            connection, _ = self.listener.accept()
            for counter, payload, mark, error in (
                (-1, b"", None, ValueError), (2**64, b"", None, ValueError), (None, b"", None, TypeError),
                ("1", b"", None, TypeError), (1, "text", None, TypeError), (1, None, None, TypeError),
                (1, [b"a", 1], None, TypeError), (1, memoryview(b"abcd")[::2], None, BufferError),
                (1, b"", 2**32, ValueError), (1, b"", -1, ValueError), (1, b"", "x", TypeError),
            ):  # fmt: skip
                with self.assertRaises(error, msg=(counter, payload, mark)):
                    board.send(counter, payload, mark)
            self.assertEqual(board.statistics().fragments, 0)
            connection.close()
        for call in (board.flush, board.end_of_run, lambda: board.send(1, b"")):
            with self.assertRaisesRegex(ValueError, "closed"):
                call()
        board.close()

    def test_nobody_listens(self):
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            address = "127.0.0.1:%d" % bound.getsockname()[1]
            with self.assertRaisesRegex(ConnectionError, "does evb run, and listen at this address.*refused"):
                evb_front_end.FrontEnd(address, connect_timeout=0.05)
            late = evb_front_end.FrontEnd(address, connect_timeout=0, timeout=0.2)
            late.send(1, b"abc")
            with self.assertRaises(ConnectionError):
                late.flush()
            with self.assertRaises(ConnectionError):
                late.close(0.01)

    def test_close_tells_what_was_not_read(self):
        board = evb_front_end.FrontEnd(self.address)
        connection, _ = self.listener.accept()
        board.send(1, b"abc")
        board.flush()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
        with self.assertRaisesRegex(ConnectionError, "before it had read everything"):
            board.close()

    def test_an_exception_is_not_replaced(self):
        with self.assertRaises(KeyError):
            with evb_front_end.FrontEnd(self.address) as board:
                board.send(1, b"abc")
                raise KeyError

    def test_a_forgotten_front_end_warns(self):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            board = evb_front_end.FrontEnd(self.address)
            del board
            gc.collect()
        self.assertEqual([warning.category for warning in said], [ResourceWarning])


@unittest.skipUnless(EVB, "EVB does not name the command of evb")
class WithEvb(unittest.TestCase):
    """Runs of evb, whose live sources get everything from the kit."""

    EVENTS = 500

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=WORK))

    def run_evb(self, text):
        """Starts a run of an experiment."""
        (self.folder / "experiment.toml").write_text(text)
        command = [EVB, "run", "--json", "--quiet", "experiment.toml"]
        run = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, text=True)
        self.addCleanup(run.stdout.close)
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        return run

    def record_of(self, run):
        output, _ = run.communicate(timeout=LIMIT)
        return run.returncode, json.loads(output.splitlines()[-1])

    def stored(self, source):
        """The fragments of a source in the order of events, as counter, mark and payload."""
        raw = self.folder / "raw"
        if not raw.exists():
            files = sorted((self.folder / "evb-data").glob("*.evb"))
            subprocess.run([EVB, "events", "verify", *files], check=True, timeout=LIMIT, stdout=subprocess.DEVNULL)
            export = [EVB, "events", "export", "--output", raw, *files]
            subprocess.run(export, check=True, timeout=LIMIT, stderr=subprocess.DEVNULL)
        record, fragments, at = struct.Struct("<QQQIIHBBI"), [], 0
        content = (raw / f"source-{source:03}.raw").read_bytes()
        while at < len(content):
            _, _, counter, mark, length, *_ = record.unpack_from(content, at)
            at += record.size
            fragments.append((counter, mark, content[at : at + length]))
            at += length
        return fragments

    def board(self, source, port):
        """The Python half of board.c."""
        with evb_front_end.FrontEnd(f"127.0.0.1:{port}", source) as board:
            for event in range(1, self.EVENTS + 1):
                payload = payload_of(event, source)
                halves = [payload[: len(payload) // 2], memoryview(payload)[len(payload) // 2 :]]
                board.send(event, payload if event % 2 else halves, mark=event * 3)
            board.end_of_run()

    def test_boards_in_c_and_in_python(self):
        ports = free_ports(4)
        run = self.run_evb(experiment(ports))
        boards = [
            subprocess.Popen([WORK / "board", f"127.0.0.1:{ports[source]}", str(source), str(self.EVENTS)]) for source in (0, 1)
        ]
        threads = [threading.Thread(target=self.board, args=(source, ports[source]), daemon=True) for source in (2, 3)]
        for thread in threads:
            thread.start()
        self.assertEqual([board.wait(LIMIT) for board in boards], [0, 0])
        for thread in threads:
            thread.join(LIMIT)
        status, record = self.record_of(run)
        self.assertEqual(status, 0, record)
        self.assertEqual((record["events"]["built"], record["events"]["incomplete"]), (self.EVENTS, 0))
        for source in range(4):
            wanted = [(event, event * 3, payload_of(event, source)) for event in range(1, self.EVENTS + 1)]
            self.assertEqual(self.stored(source), wanted)

    def test_a_cut_frame_is_repeated_and_no_event_is_lost(self):
        """A relay between kit and evb breaks the connection within a frame that is larger than what can be under way."""
        (port,) = free_ports(1)
        run = self.run_evb(experiment([port], '[readout]\nmax_fragment = "32 MiB"\n'))
        payload = bytes(range(256)) * (1 << 17)
        relay = Relay(port)
        self.addCleanup(relay.listener.close)
        with evb_front_end.FrontEnd(relay.address, timeout=LIMIT) as board:
            board.send(1, b"first")
            board.flush()
            board.send(2, payload)
            board.send(3, b"last")
            board.end_of_run()
            counts = board.statistics()
        self.assertEqual((counts.reconnects, counts.repeated), (1, 1))
        status, record = self.record_of(run)
        self.assertEqual(status, 0, record)
        self.assertEqual((record["events"]["built"], record["readouts"][0]["rejected"]), (3, 1))
        self.assertEqual([fragment[2] for fragment in self.stored(0)], [b"first", payload, b"last"])

    def test_examples(self):
        for name in ("example.c", "example.py"):
            with self.subTest(name):
                self.example(name)

    def example(self, name):
        """Runs an example at ports that are free."""
        ports = free_ports(3)

        def moved(text):
            for index, port in enumerate(ports):
                text = re.sub(rf"\b{9101 + index}\b", str(port), text)
            return text

        source = self.folder / name
        source.write_text(moved((FOLDER / name).read_text()).replace("{%d + source}" % ports[0], "{%s[source]}" % ports))
        run = self.run_evb(moved((FOLDER / "example.toml").read_text()))
        command = [sys.executable, source]
        if name.endswith(".c"):
            compile_c("moved", source, FOLDER / "evb_front_end.c", f"-I{FOLDER}")
            command = [WORK / "moved"]
        subprocess.run(command, check=True, timeout=LIMIT, env={**os.environ, "PYTHONPATH": str(WORK / "python")})
        status, record = self.record_of(run)
        self.assertEqual((status, record["events"]["built"]), (0, 1000), record)


class Relay(threading.Thread):
    """Passes connections on to evb, and breaks the first one within its second frame."""

    CUT = 100000

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port = port
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen()
        self.listener.settimeout(LIMIT)
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.start()

    def run(self):
        for most in (self.CUT, None):
            sender, _ = self.listener.accept()
            with sender, self.connect() as evb:
                sender.settimeout(LIMIT)
                self.pass_on(sender, evb, most)
                if most:
                    sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def connect(self):
        end = time.monotonic() + LIMIT
        while True:
            try:
                return socket.create_connection(("127.0.0.1", self.port), LIMIT)
            except ConnectionRefusedError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.01)

    @staticmethod
    def pass_on(sender, evb, most):
        passed = 0
        while part := sender.recv(min(1 << 16, most - passed) if most else 1 << 16):
            evb.sendall(part)
            passed += len(part)
            if passed == most:
                return


def experiment(ports, more=""):
    """An experiment with a live source at each port."""
    unit = '[[readout.unit]]\nsource = {{ type = "tcp", listen = "127.0.0.1:{}", first_counter = 1 }}\n'
    return more + "".join(map(unit.format, ports)) + '[builder]\nunits = 1\n[storage]\nkeep = "all"\n'


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [own.getsockname()[1] for own in sockets]
    for own in sockets:
        own.close()
    return ports


if __name__ == "__main__":
    unittest.main()
