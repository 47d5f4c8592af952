"""Run control for a front end: settings, start and stop, by the lines of docs/reference/front-end-control.md."""

import json
import socket
import threading

GREETING = b"evb-front-end 1\n"
LONGEST_LINE = 4096
RETRY_S = 0.1
ARGUMENTS = {"configure": lambda told: (told,), "start": lambda told: (told["run"], told["type"])}
ARGUMENTS["next"] = ARGUMENTS["start"]


class Control:
    """Passes the orders of run control on to `board`, from a thread of its own, one after the other.

    `board` may have the methods `configure(settings)`, `start(run, run_type)`, `next(run, run_type)`, `pause()`, `resume()`
    and `stop()`. An order without a method is confirmed. An exception is reported to run control with its text.
    With `listen=False` the front end connects to evb at `address`, again and again, instead of listening there.
    """

    def __init__(self, address, board, listen=True):
        host, _, port = address.rpartition(":")
        self._place, self._board = (host.strip("[]"), int(port)), board
        self._connection, self._lock, self._is_closed = None, threading.Lock(), threading.Event()
        self._listener = socket.create_server(self._place) if listen else None
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def port(self):
        """The port at which the front end listens."""
        return self._listener.getsockname()[1]

    def busy(self):
        """Says that the front end cannot take triggers."""
        self._say("busy")

    def ready(self):
        """Says that it can again."""
        self._say("ready")

    def problem(self, text):
        """Reports a problem to the people of the run."""
        self._say("problem " + _one_line(text))

    def wait(self):
        """Waits until the control connection is closed for good."""
        self._thread.join()

    def close(self):
        """Ends the connection and the thread, at the latest when the order under way is carried out."""
        self._is_closed.set()
        for end in (self._listener, self._connection):
            if end is not None:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
        if threading.current_thread() is not self._thread:
            self._thread.join()
        if self._listener is not None:
            self._listener.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _serve(self):
        while not self._is_closed.is_set():
            try:
                connection = self._listener.accept()[0] if self._listener else socket.create_connection(self._place, 1)
                with connection:
                    self._talk(connection)
            except OSError:
                self._is_closed.wait(RETRY_S)

    def _talk(self, connection):
        connection.settimeout(None)
        with connection.makefile("rb") as lines:
            connection.sendall(GREETING)
            with self._lock:
                self._connection = connection
            try:
                for line in iter(lambda: lines.readline(LONGEST_LINE), b""):
                    if line != GREETING:
                        self._obey(line)
            finally:
                with self._lock:
                    self._connection = None

    def _obey(self, line):
        number, name, *told = line.decode().rstrip("\n").split(" ", 2)
        try:
            arguments = ARGUMENTS[name](json.loads(told[0])) if name in ARGUMENTS else ()
            getattr(self._board, name, lambda *_: None)(*arguments)
        except Exception as error:  # Whatever goes wrong in a board is for the people of the run to know.
            self._say(f"{number} error {_one_line(error)}")
        else:
            self._say(f"{number} ok")

    def _say(self, line):
        with self._lock:
            if self._connection is not None:
                self._connection.sendall(line.encode()[: LONGEST_LINE - 1] + b"\n")


def _one_line(text):
    return " ".join(str(text).split())[:1000] or "no reason is given"
