"""The queue of runs at a device."""

from __future__ import annotations

from pathlib import Path

import torch
from filelock import FileLock

from udml_core.errors import UserError
from udml_core.paths import cache_folder
from udml_core.runs import Run, list_runs
from udml_core.tasks import LIVE_STATES


def resolve_device(text: str) -> str:
    """Return `cpu` or `cuda:N` for `auto`, `cpu`, `cuda` or `cuda:N`.

    Raises:
        UserError: The device does not exist.
    """
    count = torch.cuda.device_count()
    if text == "auto":
        return "cuda:0" if count else "cpu"
    if text == "cpu":
        return text
    name, _, number = text.partition(":")
    if name != "cuda" or not (number or "0").isdecimal():
        raise UserError(f"The device must be auto, cpu or cuda:N, got '{text}'.")
    if int(number or 0) >= count:
        raise UserError(f"The device '{text}' does not exist; this machine has {count} CUDA devices. Use the device "
                        "'cpu'.")
    return f"cuda:{int(number or 0)}"


def queue_position(run: Run, root: Path) -> int:
    """Return the number of runs ahead at the device; 0 if the run is next or running."""
    own_status, device = run.stored_status(), run.spec().device
    ahead = 0
    for other in list_runs(root):
        status = other.stored_status()
        if other.id == run.id or status.state not in LIVE_STATES or _device_of(other) != device:
            continue
        earlier = status.state == "running" or (status.ticket, other.id) < (own_status.ticket, run.id)
        if earlier and other.status().state in LIVE_STATES:
            ahead += 1
    return ahead


def device_lock(device: str) -> FileLock:
    """Return the lock that one run at a time holds, across all folders of runs."""
    folder = cache_folder() / "devices"
    folder.mkdir(parents=True, exist_ok=True)
    return FileLock(folder / f"{device.replace(':', '-')}.lock")


def _device_of(run: Run) -> str | None:
    """Return the run's device; None if the run was removed meanwhile."""
    try:
        return run.spec().device
    except UserError:
        return None
