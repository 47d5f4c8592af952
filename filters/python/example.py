"""A filter in Python: it accepts events with more than 1000 bytes from source 3."""
import evb_filter; evb_filter.run(lambda event: len(event[3]) > 1000)
