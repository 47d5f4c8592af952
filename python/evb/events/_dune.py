"""Events in the HDF5 layout of trigger records of DUNE, version 4.

Facts from the public repositories DUNE-DAQ/hdf5libs (names and attributes, `scripts/hdf5_dump.py`) and DUNE-DAQ/daqdataformats (headers:
trigger record header version 4 of 64 bytes, fragment header version 5 of 72 bytes, component request version 2 of 32 bytes)."""

import json
import struct

import numpy as np

from ._events import Status

_RECORD = struct.Struct("<2I3Q2IQ2HI2HI")
_REQUEST = struct.Struct("<2I2HI2Q")
_FRAGMENT = struct.Struct("<2I5Q3I4HI")
_SOURCE_VERSION, _DETECTOR_READOUT, _TR_BUILDER = 2, 1, 4
_UNUSED = 0xFFFFFFFF
# Bits of a fragment: its data were not found at all, or only a part is there.
_FRAGMENT_BITS = {Status.MISSING: 1, Status.OVERSIZED: 2}
# Bit of a trigger record: a fragment is missing.
_INCOMPLETE = 1

_LAYOUT = {
    "record_name_prefix": "TriggerRecord",
    "digits_for_record_number": 5,
    "digits_for_sequence_number": 4,
    "record_header_dataset_name": "TriggerRecordHeader",
    "raw_data_group_name": "RawData",
    "view_group_name": "Views",
    "path_param_list": [],
}


def write(events, file, detector=0, fragment_type=0, fragment_name="Unknown", clock_hz=62_500_000):
    """Writes a group for each event and a dataset for each fragment: the header of DUNE and the payload.

    `detector` is the number of the detector, `fragment_type` and `fragment_name` the type of all fragments, as DUNE numbers and
    names them. Times are those of the trigger in ticks of `clock_hz`, since 1970. A missing fragment is an empty one with the bit for
    data that were not found; the attribute `evb_status` has the status of each."""
    import h5py

    run = events.run or 0
    with h5py.File(file, "w") as output:
        attributes = {"filelayout_version": 4, "run_number": run, "file_index": 0}
        output.attrs.update({name: np.uint32(value) for name, value in attributes.items()})
        output.attrs["record_type"] = "TriggerRecord"
        output.attrs["application_name"] = "evb"
        output.attrs["filelayout_params"] = json.dumps(_LAYOUT)
        output.attrs["recorded_size"] = np.uint64(sum(_write_event(output, event, run, clock_hz, detector, fragment_type, fragment_name)
                                                      for event in events))


def _write_event(output, event, run, clock_hz, detector, fragment_type, fragment_name):
    """Writes an event and returns its bytes."""
    time = (event.triggered or 0) * clock_hz // 1_000_000_000
    raw = output.create_group(f"TriggerRecord{event.number:05}.0000/RawData")
    fragments = [(fragment, fragment.index, fragment.status) for fragment in event.fragments]
    requests = b"".join(
        _REQUEST.pack(2, _UNUSED, _SOURCE_VERSION, _DETECTOR_READOUT, source, time, time) for _, source, _ in fragments
    )
    is_incomplete = any(status == Status.MISSING for *_, status in fragments)
    header = _RECORD.pack(
        0x33334444, 4, event.number, time, len(fragments), run, _INCOMPLETE * is_incomplete, 0, 0, 0, _UNUSED,
        _SOURCE_VERSION, _TR_BUILDER, 0,
    )
    written = _put(raw, "TR_Builder_0x00000000_TriggerRecordHeader", header + requests)
    for fragment, source, status in fragments:
        payload = fragment.payload
        size = _FRAGMENT.size + (0 if payload is None else len(payload))
        head = _FRAGMENT.pack(
            0x11112222, 5, size, event.number, time, time, time, run, _FRAGMENT_BITS.get(status, 0), fragment_type, 0, detector,
            _SOURCE_VERSION, _DETECTOR_READOUT, source,
        )
        name = f"Detector_Readout_0x{source:08x}_{fragment_name}"
        written += _put(raw, name, head + (b"" if payload is None else payload.tobytes()))
        raw[name].attrs["evb_status"] = status.name.lower()
    return written


def _put(group, name, data):
    group.create_dataset(name, data=np.frombuffer(data, "i1"))
    return len(data)
