"""The front-end kit of evb: sends the fragments of one source to a readout unit by TCP.

    import evb_front_end

    with evb_front_end.FrontEnd("127.0.0.1:9101", source=0) as board:
        for counter in range(1, 1001):
            board.send(counter, payload)
        board.end_of_run()

A payload is any object with the buffer protocol, such as bytes, memoryview or an array of NumPy, or a list of them. It is not
copied, and other threads of Python go on while a call waits. docs/guides/front-ends.md has more.
"""

from ._native import Counts, FrontEnd, crc32c
from .control import Control

__all__ = ["Control", "Counts", "FrontEnd", "crc32c"]
