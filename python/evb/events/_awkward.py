"""Events as Awkward arrays."""

import awkward as ak
import numpy as np
from awkward.contents import ByteMaskedArray, ListArray, ListOffsetArray, NumpyArray, RecordArray
from awkward.index import Index8, Index64


def array(events):
    fragments = events.fragments
    content, starts = events._content
    lengths = fragments.length.astype("i8")
    payload = ListArray(Index64(starts), Index64(starts + lengths), NumpyArray(content))
    columns = {
        "source": NumpyArray(fragments.source),
        "status": NumpyArray(fragments.status),
        "length": NumpyArray(fragments.length),
        "counter": masked(NumpyArray(fragments.counter), fragments.has_counter),
        "mark": masked(NumpyArray(fragments.mark), fragments.has_mark),
        "payload": masked(payload, ~fragments.is_missing),
    }
    all_fragments = ListOffsetArray(Index64(events._bounds), RecordArray(list(columns.values()), list(columns)))
    heads = {
        "event": NumpyArray(events.event),
        "complete": NumpyArray(events.complete),
        "time": NumpyArray(events.time),
        "source_time": masked(NumpyArray(events.source_time), events.source_time != 0),
        "fragments": all_fragments,
    }
    return ak.Array(RecordArray(list(heads.values()), list(heads)))


def masked(content, is_known):
    """The content, and None where it is not known."""
    return ByteMaskedArray(Index8(np.asarray(is_known).astype("i1")), content, valid_when=True)
