"""Engines: programs other than the queue of this machine that start the workers of runs.

`hand_over` gives a run to an engine, and the file `engine.json` in its folder names the owner from then on: the queue
of this machine never starts it. The engine runs `udml work RUN`, as the queue does, on a folder of runs that all
machines share. The worker alone writes the run's status, and the engine is asked only while no worker holds the run's
lock.
"""

from udml_core.runs.engines.engine_request import EngineRequest, gpus_of
from udml_core.runs.engines.owner import Owner, read_owner
from udml_core.runs.engines.states import cancel, job_of
from udml_core.runs.engines.submission import check_engine, forget_owner, hand_over, remove_submission

__all__ = ["EngineRequest", "Owner", "cancel", "check_engine", "forget_owner", "gpus_of", "hand_over", "job_of",
           "read_owner", "remove_submission"]
