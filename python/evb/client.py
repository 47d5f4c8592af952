"""A client of the service of `evb serve`: its status, its commands, its runs."""

import json
import os
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Iterator

from . import monitor
from ._histogram import Histogram, by_name
from ._native import EvbError


class Client:
    """A service of `evb serve`.

        service = evb.Client("http://127.0.0.1:8080/#token=6fc5..")  # as `evb serve` prints it
        service.start(type="cosmics")
        service.status()["run"]

    The token may be given by itself, too; that of the environment variable EVB_HTTP_TOKEN is taken otherwise."""

    def __init__(self, address: str = "http://127.0.0.1:8080", token: "str | None" = None, timeout: float = 30.0):
        address, _, of_address = address.partition("#token=")
        self.address, self.timeout = address.rstrip("/"), timeout
        self.token = token or of_address or os.environ.get("EVB_HTTP_TOKEN", "")

    def status(self) -> dict:
        """State, possible commands, run, nodes, rates and the record so far."""
        return self.request("GET", "/api/status")

    def configure(self) -> dict:
        """Gathers the nodes and connects them."""
        return self._command("configure")

    def start(self, type: str = "", comment: str = "") -> dict:
        """Begins a run."""
        return self._command("start", type=type, comment=comment)

    def pause(self) -> dict:
        """Turns triggers away until `resume`."""
        return self._command("pause")

    def resume(self) -> dict:
        """Takes triggers again."""
        return self._command("resume")

    def stop(self) -> dict:
        """Takes no more triggers and builds what was triggered."""
        return self._command("stop")

    def abort(self) -> dict:
        """Ends the run without waiting for open events."""
        return self._command("abort")

    def experiment(self) -> str:
        """The text of the experiment file."""
        return self.request("GET", "/api/experiment")["text"]

    def load(self, text: str) -> dict:
        """Gives the service another experiment, between runs."""
        return self.request("PUT", "/api/experiment", {"text": text})

    def runs(self, limit: int = 50) -> "list[dict]":
        """The latest runs of the registry, the latest first."""
        return self.request("GET", f"/api/runs?limit={int(limit)}")["runs"]

    def run(self, number: int) -> dict:
        """A run of the registry."""
        return self.request("GET", f"/api/runs/{int(number)}")

    def history(self) -> Any:
        """The rates of the last hour."""
        return self.request("GET", "/api/history")

    def distributions(self) -> Any:
        """The distributions of latencies and sizes."""
        return self.request("GET", "/api/distributions")

    def histograms(self) -> "dict[str, Histogram]":
        """The histograms of the run so far, or of the last run, by name. `noisy` and `silent` of each are the channels that stand
        out."""
        return by_name(self.request("GET", "/api/histograms")["histograms"])

    def events(self, timeout: float = 60.0) -> "Iterator[monitor.Event]":
        """Copies of events while they are built. `timeout` is the longest silence in seconds."""
        return monitor.events(self.address, self.token, timeout)

    def request(self, method: str, path: str, body: "Any | None" = None) -> Any:
        """Any request of the REST interface. EvbError has the reason of a refusal and the hint."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", "X-Evb": "1"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                raise _refused(error) from None
        except urllib.error.URLError as error:
            raise EvbError(f"no service answers at {self.address}: {error.reason}\nhint: is `evb serve` running there?") from None

    def _command(self, name, **details):
        details = {key: value for key, value in details.items() if value}
        return self.request("POST", "/api/command", {"command": name, **details})

    def __repr__(self):
        return f"<evb.Client of {self.address}>"


def _refused(error):
    try:
        answer = json.load(error)
        text, hint = answer["error"], answer.get("hint")
    except (ValueError, KeyError, TypeError):
        return EvbError(str(error))
    return EvbError(f"{text}\nhint: {hint}" if hint else text)
