"""How fast the kit sends fragments from Python, into a sink in a process of its own, or into evb.

    python3 bench.py [BYTES [FRAGMENTS [HOST:PORT [SOURCE]]]]

Prints median, minimum and maximum of five parts of FRAGMENTS each.
"""

import multiprocessing
import socket
import statistics
import sys
import time

import evb_front_end

PARTS = 5


def sink(listener):
    """Reads a connection to its end, and drops everything."""
    connection, _ = listener.accept()
    buffer = bytearray(1 << 18)
    while connection.recv_into(buffer):
        pass


def main(size=65536, fragments=20000, address=None, source=0):
    payload = bytes(int(size))
    if not address:
        listener = socket.create_server(("127.0.0.1", 0))
        address = "127.0.0.1:%d" % listener.getsockname()[1]
        multiprocessing.get_context("fork").Process(target=sink, args=[listener], daemon=True).start()
        listener.close()
    counter, rates, frequencies = 0, [], []
    with evb_front_end.FrontEnd(address, int(source)) as board:
        for _ in range(PARTS):
            start = time.perf_counter()
            for _ in range(int(fragments)):
                counter += 1
                board.send(counter, payload)
            board.flush()
            seconds = time.perf_counter() - start
            rates.append(int(fragments) * len(payload) / seconds / 1e9)
            frequencies.append(int(fragments) / seconds / 1e3)
        board.end_of_run()
    for name, values, unit in (("bytes", rates, "GB/s"), ("fragments", frequencies, "kHz")):
        print(f"{name:10} median {statistics.median(values):8.3f} {unit}, minimum {min(values):.3f}, maximum {max(values):.3f}")


main(*sys.argv[1:])
