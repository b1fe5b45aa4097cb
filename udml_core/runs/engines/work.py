"""What a job of submitit does: start `udml work RUN` and wait.

submitit pickles this object, with nothing in it but texts. It checkpoints by being submitted again: the run continues
after its last finished epoch.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from submitit.helpers import Checkpointable

from udml_core.base.paths import PACKAGE_ROOT

GRACE = 20.0
"""Seconds that the worker has to end before the job is requeued."""


class WorkRun(Checkpointable):
    """The work of one run.

    Attributes:
        folder: The run's folder.
        settings: Environment variables of the worker.
        is_cluster: Whether the engine chooses the GPUs.
    """

    def __init__(self, folder: str, settings: Mapping[str, str], is_cluster: bool) -> None:
        self.folder = folder
        self.settings = dict(settings)
        self.is_cluster = is_cluster

    def __call__(self) -> None:
        """Start the worker and wait until it ends.

        Raises:
            RuntimeError: The worker ended before the run was done, which the engine then lists as a failed job.
        """
        # The worker must not end by the signal with which submitit announces the end of the time limit.
        own = {submitit_signal()}
        signal.pthread_sigmask(signal.SIG_BLOCK, own)
        with (Path(self.folder) / "log.txt").open("ab") as log:
            worker = subprocess.Popen([sys.executable, "-m", "udml_core", "work", self.folder], env=self._environment(),
                                      stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, own)
            code = worker.wait()
        finally:
            _end(worker)
        if code:
            raise RuntimeError(f"The worker of {self.folder} ended with code {code}. Read log.txt there.")

    def _environment(self) -> dict[str, str]:
        """Return the worker's environment variables: the machine's, and the settings with which the run was queued."""
        gpus = "CUDA_VISIBLE_DEVICES"  # a cluster chooses them, and submitit's local jobs would see none
        machine = {name: value for name, value in os.environ.items()
                   if not name.startswith("UDML_") and (self.is_cluster or name != gpus)}
        settings = {name: value for name, value in self.settings.items() if not self.is_cluster or name != gpus}
        return machine | settings | {"PYTHONPATH": str(PACKAGE_ROOT), "PYTHONIOENCODING": "utf-8"}


def submitit_signal() -> signal.Signals:
    """Return the signal with which submitit announces the end of a job."""
    from submitit.core.job_environment import JobEnvironment

    own_signal: signal.Signals = JobEnvironment._usr_sig()
    return own_signal


def _end(worker: subprocess.Popen[bytes]) -> None:
    """End a worker that still lives; what its last finished epoch stored stays."""
    if worker.poll() is None:
        worker.terminate()
        try:
            worker.wait(GRACE)
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait()
