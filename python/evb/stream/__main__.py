"""`python3 -m evb.stream FILE... --to kafka://host:port/topic`: sends the events of files to Kafka or ZeroMQ."""

import argparse
import signal
import sys
import time

from .. import EvbError
from . import forward, sink_of
from ._sink import PATIENCE, TIMEOUT

# Seconds between two lines of progress.
EVERY = 10.0
ADDRESSES = """addresses:
  kafka://HOST:PORT/TOPIC?schema=raw
  kafka://HOST:PORT/TOPIC?schema=ev44&decoder=FILE.toml&id=FIELD&time=FIELD
  kafka://HOST:PORT/TOPIC?schema=ad00&decoder=FILE.toml&shape=512x512
  zmq+push://*:PORT  zmq+pub://*:PORT  zmq+push://HOST:PORT

exit status: 0 if everything was delivered, 1 if something was not or was left out, 2 if a stream could not begin or was given up"""


def main() -> int:
    arguments = _parser().parse_args()
    try:
        sink = sink_of(arguments.to, timeout=arguments.timeout, leave_out=arguments.leave_out, **_config(arguments))
    except (EvbError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sink.stop())
    failed = False
    try:
        forward(arguments.files, sink, arguments.follow, arguments.state, None if arguments.quiet else _Lines())
    except (EvbError, ValueError, OSError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        failed = True
    # What still waits had its time.
    counts = sink.close(0 if sink.counts.waiting else PATIENCE)
    print(counts)
    return 2 if failed else int(counts.waiting + counts.failed > 0)


def _parser():
    parser = argparse.ArgumentParser(prog="python3 -m evb.stream", description="Sends the events of files to Kafka or ZeroMQ.",
                                     epilog=ADDRESSES, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE", help="event files, patterns or folders")
    parser.add_argument("--to", required=True, metavar="ADDRESS", help="where to; see below")
    parser.add_argument("--follow", action="store_true", help="go on with what is stored later, until Ctrl-C or SIGTERM")
    parser.add_argument("--state", metavar="FILE", help="keep the position there, and continue from it: each event arrives at least once")
    parser.add_argument("--timeout", type=float, default=TIMEOUT, metavar="SECONDS",
                        help="give up after so long without progress; `inf` never does (default: %(default)g)")
    parser.add_argument("--leave-out", action="store_true", help="go on behind an event that is refused; it counts as failed")
    parser.add_argument("--config", metavar="FILE.toml", help="settings of librdkafka, such as those of TLS")
    parser.add_argument("--quiet", "-q", action="store_true", help="only the last line")
    return parser


def _config(arguments):
    if arguments.config is None:
        return {}
    if not arguments.to.startswith("kafka:"):
        raise EvbError("--config is for Kafka\nhint: leave it out")
    try:
        import tomllib
    except ImportError:  # Python 3.10
        import tomli as tomllib

    with open(arguments.config, "rb") as file:
        try:
            return {"config": tomllib.load(file)}
        except tomllib.TOMLDecodeError as error:
            raise EvbError(f"{arguments.config}: {error}\nhint: a line is \"security.protocol\" = \"ssl\"") from None


class _Lines:
    """Lines of progress."""

    def __init__(self):
        self.last = time.monotonic()

    def __call__(self, counts):
        if time.monotonic() - self.last >= EVERY:
            self.last = time.monotonic()
            print(counts, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
