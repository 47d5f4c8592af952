"""A front end that sends fragments to a run."""

try:
    from evb_front_end import FrontEnd as Source
except ImportError:
    raise ImportError("evb.Source is in the front-end kit: install `clients/front-end` of the repository of evb") from None
