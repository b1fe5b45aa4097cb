"""Submit one run, as a process of its own: `python -m udml_core.runs.engines.submit JSON`.

A process of its own, because submitit's local jobs are its children and belong to its session, which must outlive the
terminal, and because a death of the app must not separate the submission from the note of its number.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

import submitit

from udml_core.runs.engines.engine_request import EngineRequest
from udml_core.runs.engines.owner import Owner, read_owner
from udml_core.runs.engines.work import WorkRun

MOST_CONTINUATIONS = 1000
"""Number of time limits that a run may reach; every epoch is saved."""
SECONDS_TO_SAVE = 90


def main(folder: Path, pickles: Path, settings: dict[str, str]) -> None:
    """Submit a run and store the number of its job."""
    owner = read_owner(folder)
    assert owner is not None, "the owner is stored before the submission"
    request = owner.request
    is_cluster = request.engine == "slurm"
    executor = submitit.AutoExecutor(pickles, cluster="slurm" if is_cluster else "local", **{
        f"{'slurm' if is_cluster else 'local'}_max_num_timeout": MOST_CONTINUATIONS})
    executor.update_parameters(**_parameters(request, folder.name))
    job = executor.submit(WorkRun(str(folder), settings, is_cluster))
    Owner.model_validate(owner.model_dump() | {"job": job.job_id, "submitted": time.time()}).write(folder)


def _parameters(request: EngineRequest, name: str) -> dict[str, Any]:
    """Return the parameters of submitit's executor."""
    shared: dict[str, Any] = {"name": name, "timeout_min": request.minutes, "cpus_per_task": request.cpus}
    if request.engine != "slurm":
        return {"timeout_min": request.minutes}
    options = {"mem_gb": request.memory, "gpus_per_node": request.gpus or None, "slurm_partition": request.partition,
               "slurm_account": request.account, "slurm_qos": request.qos, "slurm_constraint": request.constraint}
    return shared | {key: value for key, value in options.items() if value is not None} | {
        "slurm_signal_delay_s": min(SECONDS_TO_SAVE, 20 * request.minutes),  # shorter than the time limit
        "slurm_additional_parameters": {"requeue": True}}


def _exit(error: Exception) -> NoReturn:
    """End with one line that says why the engine did not accept the job."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    print(" ".join(line.strip() for line in lines), file=sys.stderr)
    sys.exit(1)


if __name__ == "__main__":
    words = json.loads(sys.argv[1])
    try:
        main(Path(words["folder"]), Path(words["pickles"]), words["settings"])
    except (OSError, ValueError, RuntimeError, submitit.core.utils.FailedJobError) as problem:
        _exit(problem)
