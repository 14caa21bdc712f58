# SPDX-License-Identifier: Apache-2.0
from leat import callbacks as callbacks
from leat.errors import ArgumentError as ArgumentError
from leat.errors import BusyError as BusyError
from leat.errors import DataError as DataError
from leat.errors import DtypeError as DtypeError
from leat.errors import Error as Error
from leat.errors import FileError as FileError
from leat.errors import FormatError as FormatError
from leat.errors import LateError as LateError
from leat.errors import MemoryLackError as MemoryLackError
from leat.errors import MissingFileError as MissingFileError
from leat.errors import NotFoundError as NotFoundError
from leat.errors import PickleError as PickleError
from leat.errors import ShapeError as ShapeError
from leat.errors import StoppedError as StoppedError
from leat.errors import WorkerError as WorkerError
from leat.feed import Feed as Feed
from leat.history import History as History
from leat.model import Model as Model
from leat.native_source import Source as Source
from leat.native_source import source as source
from leat.native_source import source_help as source_help
from leat.predictor import Predictor as Predictor
from leat.random import rng as rng
from leat.report import progress as progress
from leat.tuning import Trial as Trial
from leat.tuning import Tuning as Tuning
from leat.tuning import tune as tune
from leat.workers import WorkerInfo as WorkerInfo
from leat.workers import worker_info as worker_info

__version__: str
