"""Tests of run control in the kit, in Python and in C, without evb."""

import importlib.util
import pathlib
import socket
import subprocess
import tempfile
import time
import unittest

FOLDER = pathlib.Path(__file__).resolve().parent.parent
# What takes longer hangs, in seconds.
LIMIT = 60
spec = importlib.util.spec_from_file_location("control", FOLDER / "python/evb_front_end/control.py")
control = importlib.util.module_from_spec(spec)
spec.loader.exec_module(control)


class Board:
    def __init__(self):
        self.heard = []

    def configure(self, settings):
        self.heard.append(settings)
        if settings.get("threshold", 0) > 100:
            raise ValueError("the threshold\nis above 100")

    def start(self, run, run_type):
        self.heard.append((run, run_type))

    def stop(self):
        self.heard.append("stop")


class Run:
    """What evb does."""

    def __init__(self, link):
        link.settimeout(LIMIT)
        self.link, self.lines = link, link.makefile("r", newline="\n")
        link.sendall(control.GREETING)
        assert self.lines.readline() == "evb-front-end 1\n"

    def ask(self, line):
        self.link.sendall(line.encode() + b"\n")
        return self.lines.readline().rstrip("\n")

    def close(self):
        self.lines.close()
        self.link.close()


class ControlTest(unittest.TestCase):
    def test_orders_reach_the_methods_of_a_board_in_each_run(self):
        board = Board()
        with control.Control("127.0.0.1:0", board) as served:
            for run in (1, 2):
                evb = Run(socket.create_connection(("127.0.0.1", served.port), LIMIT))
                self.assertEqual(evb.ask('1 configure {"threshold": 12}'), "1 ok")
                self.assertEqual(evb.ask(f'2 start {{"run": {run}, "type": "physics"}}'), "2 ok")
                self.assertEqual(evb.ask("3 pause"), "3 ok", "a board without pauses")
                self.assertEqual(evb.ask("4 stop"), "4 ok")
                evb.close()
                self.assertEqual(board.heard, [{"threshold": 12}, (run, "physics"), "stop"])
                board.heard.clear()

    def test_errors_and_problems_are_one_line(self):
        with control.Control("127.0.0.1:0", Board()) as served:
            evb = Run(socket.create_connection(("127.0.0.1", served.port), LIMIT))
            self.assertEqual(evb.ask('1 configure {"threshold": 101}'), "1 error the threshold is above 100")
            self.assertRegex(evb.ask("2 configure {"), "^2 error .")
            served.busy()
            served.ready()
            served.problem("hot\nboard")
            self.assertEqual([evb.lines.readline() for _ in range(3)], ["busy\n", "ready\n", "problem hot board\n"])
            evb.close()

    def test_a_board_connects_again(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.settimeout(LIMIT)
            port = listener.getsockname()[1]
            with control.Control(f"127.0.0.1:{port}", Board(), listen=False):
                for _ in range(2):
                    evb = Run(listener.accept()[0])
                    self.assertEqual(evb.ask("1 configure {}"), "1 ok")
                    evb.close()

    def test_a_board_in_c(self):
        with tempfile.TemporaryDirectory() as work:
            program = f"{work}/board"
            sources = [FOLDER / "example_control.c", FOLDER / "evb_front_end_control.c"]
            flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-g", "-fsanitize=address,undefined"]
            subprocess.run(["cc", *flags, "-o", program, *sources, "-pthread"], check=True)
            with socket.create_server(("127.0.0.1", 0)) as taken:
                port = taken.getsockname()[1]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            with subprocess.Popen([program, f"127.0.0.1:{port}"], **pipes) as board:
                for run in (1, 2):
                    evb = Run(connected(port))
                    self.assertEqual(evb.ask('1 configure {"gain":"off"}'), "1 error the gain is off")
                    self.assertEqual(evb.ask('2 configure {"gain":"high"}'), "2 ok")
                    self.assertEqual(evb.ask(f'3 start {{"run":{run},"type":"a b"}}'), "3 ok")
                    evb.link.sendall(b"4 pau")
                    self.assertEqual(evb.ask("se\n5 stop"), "4 ok")
                    self.assertEqual(evb.lines.readline(), "5 ok\n")
                    evb.close()
                for hostile in (b"\n", b"\0\0\n", b"x" * 5000, b"1 " + b"y" * 4093 + b"\n"):
                    evb = Run(connected(port))
                    try:
                        evb.link.sendall(hostile)
                        evb.link.shutdown(socket.SHUT_WR)
                        evb.lines.read()
                    except OSError:
                        pass  # The board has closed the connection.
                    evb.close()
                heard = board.communicate("", LIMIT)[0].splitlines()
                self.assertEqual(board.returncode, 0)
            self.assertEqual(heard[1:5], ['configure {"gain":"high"}', 'start {"run":1,"type":"a b"}', "pause ", "stop "])


def connected(port):
    """A connection to a board that is about to listen."""
    end = time.monotonic() + LIMIT
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), LIMIT)
        except ConnectionRefusedError:
            assert time.monotonic() < end
            time.sleep(0.002)


if __name__ == "__main__":
    unittest.main()
