from . import client as client
from . import events as events
from . import filter as filter
from . import monitor as monitor
from ._experiment import Experiment as Experiment
from ._experiment import Problem as Problem
from ._experiment import check as check
from ._experiment import load as load
from ._experiment import parse as parse
from ._experiment import schema as schema
from ._histogram import Histogram as Histogram
from ._native import EvbError as EvbError
from ._native import ExperimentError as ExperimentError
from ._program import bench as bench
from ._program import paper as paper
from ._program import program as program
from ._record import Record as Record
from ._record import Records as Records
from ._record import compare as compare
from ._record import read_records as read_records
from ._run import Run as Run
from ._run import run as run
from ._simulation import simulate as simulate
from ._simulation import sweep as sweep
from ._source import Source as Source
from .client import Client as Client

__version__: str
