"""Event files: what a run has stored, as arrays.

    events = evb.events.open("evb-data/*.evb")
    events.event, events.complete                 # NumPy arrays, one entry per event
    events.fragments.source, .length, .counter    # and one entry per fragment
    events[17]["ru0"]                             # the payload of a fragment, without a copy
    events.awkward().fragments.payload            # all of them, without a copy
    events.decode("ru0", [("channel", "<u2"), ("charge", "<u2")])
    events.export("run.parquet")
"""

from ._decode import Decoder, read_decoder
from ._events import Event, Events, Fragment, Fragments, Status, follow, open
from ._export import FORMATS, export

__all__ = ["Decoder", "Event", "Events", "FORMATS", "Fragment", "Fragments", "Status", "export", "follow", "open", "read_decoder"]
