"""The queue of runs at a device."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import torch
from filelock import FileLock, Timeout

from udml_core.analyses import Analysis
from udml_core.errors import UserError, quoted
from udml_core.files import replace_text
from udml_core.jobs import dispatch
from udml_core.jobs.dispatch import TICKET_FILE, place
from udml_core.paths import cache_folder
from udml_core.runs import Run, list_runs
from udml_core.tasks import LIVE_STATES, Status


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
        raise UserError(f"The device must be auto, cpu or cuda:N, got {quoted(text)}.")
    if int(number or 0) >= count:
        raise UserError(f"The device {quoted(text)} does not exist; this machine has {count} CUDA devices. "
                        "Use the device 'cpu'.")
    return f"cuda:{int(number or 0)}"


def queue_position(run: Run, root: Path) -> int:
    """Return the number of runs ahead at the device; 0 if the run is next or running."""
    own_status, device = run.stored_status(), run.spec().device
    ahead = 0
    for other in list_runs(root):
        status = other.stored_status()
        if other.id == run.id or status.state not in LIVE_STATES or _device_of(other) != device:
            continue
        earlier = status.state == "running" or _order(other, status) < _order(run, own_status)
        if earlier and other.status().state in LIVE_STATES:
            ahead += 1
    return ahead


def queue_positions(root: Path) -> dict[Run, int]:
    """Return `queue_position` of all waiting runs, of which each is read once."""
    ahead: Counter[str | None] = Counter()
    listed = list_runs(root)
    for run in listed:
        if run.stored_status().state == "running" and run.status().state == "running":
            ahead[_device_of(run)] += 1
    positions = {}
    for run in waiting_runs(root, among=listed):
        device = _device_of(run)
        positions[run] = ahead[device]
        ahead[device] += 1
    return positions


def waiting_analyses(root: Path) -> list[Analysis]:
    """List the analyses that wait for the analyses before them, next first."""
    tasks = dispatch.waiting(root, dispatch.ANALYSES)
    return [Analysis(folder) for _, folder in sorted((status.get("ticket", 0.0), folder) for folder, status in tasks)]


def waiting_runs(root: Path, device: str | None = None, among: Iterable[Run] | None = None) -> list[Run]:
    """List the runs that wait for their device, next first.

    Args:
        root: The folder of runs.
        device: Only the runs of this device; of every device if None.
        among: Runs of this folder that are listed already.
    """
    waiting = [(run, run.stored_status()) for run in (list_runs(root) if among is None else among)]
    waiting = [(run, status) for run, status in waiting if status.state == "waiting"
               and device in (None, _device_of(run)) and run.status().state == "waiting"]
    return [run for run, _ in sorted(waiting, key=lambda pair: _order(*pair))]


def move(run: Run, to: int) -> None:
    """Move a waiting run to a place among the waiting runs of its device.

    The waiting runs exchange their tickets, so that runs that are submitted later stay behind them.

    Args:
        run: The run.
        to: The new place, 0 for the next run to start; places beyond the end mean the end.

    Raises:
        UserError: The run does not wait, for example because it has started meanwhile.
    """
    device, root = run.spec().device, run.folder.parent
    with _queue_lock(device):
        queue = waiting_runs(root, device)
        if run not in queue:
            raise UserError(f"{run.id} is {run.status().state}; only a waiting run can be moved in the queue.")
        tickets = [_order(waiting, waiting.stored_status())[0] for waiting in queue]
        order = [other for other in queue if other != run]
        order.insert(max(0, to), run)
        for waiting, before, ticket in zip(order, queue, _increasing(tickets), strict=True):
            if waiting != before or ticket != _order(waiting, waiting.stored_status())[0]:
                replace_text(waiting.folder / TICKET_FILE, repr(ticket))


def leave_place(run: Run) -> None:
    """Forget the place that a run was moved to, before it is queued again."""
    (run.folder / TICKET_FILE).unlink(missing_ok=True)


def device_lock(device: str) -> FileLock:
    """Return the lock that one run at a time holds, across all folders of runs."""
    folder = cache_folder() / "devices"
    folder.mkdir(parents=True, exist_ok=True)
    return FileLock(folder / f"{device.replace(':', '-')}.lock")


@contextmanager
def other_free_gpus(device: str) -> Iterator[list[str]]:
    """Hold the locks of the other GPUs of this machine that no run uses, to share a computation with them.

    Args:
        device: The device of the run, `cpu` or `cuda:N`.

    Yields:
        The other GPUs; none for a CPU.
    """
    names = [f"cuda:{number}" for number in range(torch.cuda.device_count())] if device.startswith("cuda") else []
    with ExitStack() as held:
        free = []
        for name in names:
            with suppress(Timeout):
                if name != device:
                    held.enter_context(device_lock(name).acquire(timeout=0))
                    free.append(name)
        yield free


def _queue_lock(device: str) -> FileLock:
    """Return the lock under which the order of a device's waiting runs changes."""
    lock = Path(device_lock(device).lock_file)
    return FileLock(lock.with_name(f"{lock.stem}-queue.lock"), timeout=10)


def _order(run: Run, status: Status) -> tuple[float, str]:
    """Return the key by which runs start: the ticket of a move, else of the submission, then the id."""
    return place(run.folder, status.ticket), run.id


def _increasing(tickets: list[float]) -> list[float]:
    """Return tickets in the same order without ties, in which the id would decide."""
    distinct: list[float] = []
    for ticket in tickets:
        distinct.append(ticket if not distinct or ticket > distinct[-1] else math.nextafter(distinct[-1], math.inf))
    return distinct


def _device_of(run: Run) -> str | None:
    """Return the run's device; None if the run was removed meanwhile."""
    try:
        return run.spec().device
    except UserError:
        return None
