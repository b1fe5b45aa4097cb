"""The queue of runs at a device."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import torch
from filelock import FileLock, Timeout

from udml_core.base.errors import UserError, quoted
from udml_core.base.files import replace_text
from udml_core.base.paths import cache_folder
from udml_core.runs import Run, Spec, list_runs
from udml_core.runs.analyses import Analysis
from udml_core.runs.engines import read_owner
from udml_core.runs.tasks import LIVE_STATES, Status
from udml_core.work.jobs import dispatch
from udml_core.work.jobs.dispatch import TICKET_FILE, order_key


def resolve_device(text: str, gpus: int | None = None) -> str:
    """Return `cpu` or `cuda:N` for `auto`, `cpu`, `cuda`, `cuda:N` or `cuda:all`.

    Args:
        text: The device; `cuda:all` begins with the first GPU.
        gpus: Number of GPUs where the run will work; by default this machine's.

    Raises:
        UserError: The device does not exist.
    """
    count, where = (torch.cuda.device_count(), "this machine has") if gpus is None else (
        gpus, "the engine options request")
    if text == "auto":
        return "cuda:0" if count else "cpu"
    if text == "cpu":
        return text
    name, _, number = text.removesuffix(":all").partition(":")
    if name != "cuda" or not (number or "0").isdecimal():
        raise UserError(f"The device must be auto, cpu, cuda:N or cuda:all, got {quoted(text)}.")
    if int(number or 0) >= count:
        raise UserError(f"The device {quoted(text)} does not exist; {where} {count} CUDA devices. "
                        + ("Use the device 'cpu'." if gpus is None else "Add --engine-option gpus=1."))
    return f"cuda:{int(number or 0)}"


def resolve_processes(device: str, processes: int, gpus: int | None = None) -> int:
    """Return the number of processes of a run.

    Args:
        device: The requested device; with `cuda:all` each GPU has a process.
        processes: The requested number.
        gpus: Number of GPUs where the run will work; by default this machine's.

    Raises:
        UserError: There are fewer GPUs.
    """
    count = torch.cuda.device_count() if gpus is None else gpus
    if device == "cuda:all":
        if processes not in (1, count):
            raise UserError(f"The device 'cuda:all' starts one process on each of {count} GPUs, got "
                            f"processes={processes}. Remove one of the two.")
        return count
    first = resolve_device(device, gpus)
    if first != "cpu" and int(first.partition(":")[2]) + processes > count:
        raise UserError(f"{processes} processes from the device '{first}' need as many GPUs, and there are {count}. "
                        "Lower the number of processes, or use the device 'cpu'.")
    return processes


def devices_of(spec: Spec) -> list[str]:
    """Return the devices that a run uses: the GPU of each of its processes, or the CPU."""
    if spec.device == "cpu":
        return ["cpu"]
    first = int(spec.device.partition(":")[2])
    return [f"cuda:{number}" for number in range(first, first + spec.processes)]


def queue_position(run: Run, root: Path) -> int:
    """Return the number of runs ahead at the device; 0 if the run is next or running."""
    if read_owner(run.folder) is not None:  # an engine has its own queue
        return 0
    own_status, device = run.stored_status(), run.spec().device
    ahead = 0
    for other in list_runs(root):
        status = other.stored_status()
        if other.id == run.id or status.state not in LIVE_STATES or _device_of(other) != device \
                or read_owner(other.folder) is not None:
            continue
        earlier = status.state == "running" or _order(other, status) < _order(run, own_status)
        if earlier and other.status().state in LIVE_STATES:
            ahead += 1
    return ahead


def queue_positions(root: Path) -> dict[Run, int]:
    """Return `queue_position` of all waiting runs, of which each is read once."""
    ahead: Counter[str | None] = Counter()
    listed = [run for run in list_runs(root) if read_owner(run.folder) is None]
    for run in listed:
        if run.stored_status().state == "running" and run.status().state == "running":
            ahead[_device_of(run)] += 1
    positions = {}
    for run in waiting_runs(root, among=listed):
        device = _device_of(run)
        positions[run] = ahead[device]
        ahead[device] += 1
    return positions


def engine_of(run: Run) -> str:
    """Return the engine that starts a run's worker; `local` is the queue of this machine."""
    owner = read_owner(run.folder)
    return "local" if owner is None else owner.request.engine


def place_in_queue(run: Run, ahead: int | None = None) -> str:
    """Describe in words what a waiting run waits for: the runs before it, or its engine.

    Args:
        run: The waiting run.
        ahead: Its `queue_position`, if it is known.
    """
    if engine_of(run) != "local":
        return run.status().phase or f"handed to {engine_of(run)}"
    return f"{queue_position(run, run.folder.parent) if ahead is None else ahead} ahead"


def waiting_analyses(root: Path) -> list[Analysis]:
    """List the analyses that wait for the analyses before them, next first."""
    tasks = [*dispatch.waiting(root, dispatch.ANALYSES), *dispatch.waiting(root, dispatch.RACES)]
    return [Analysis(folder) for _, folder in sorted((status.get("ticket", 0.0), folder) for folder, status in tasks)]


def running_before(analysis: Analysis) -> Analysis | None:
    """Return the analysis in progress behind which an analysis waits; None if none is in its lane."""
    lane = dispatch.lane_of(analysis.spec().kind)
    for path in analysis.run.root.glob("[!.]*/analyses/[!.]*/status.json"):
        other = Analysis(path.parent)
        if other.stored_status().state == "running" and other.folder != analysis.folder and other.has_spec() \
                and dispatch.lane_of(other.spec().kind) == lane and other.status().state == "running":
            return other
    return None


def waiting_runs(root: Path, device: str | None = None, among: Iterable[Run] | None = None) -> list[Run]:
    """List the runs that wait for their device in the queue of this machine, next first.

    Args:
        root: The folder of runs.
        device: Only the runs of this device; of every device if None.
        among: Runs of this folder that are listed already.
    """
    waiting = [(run, run.stored_status()) for run in (list_runs(root) if among is None else among)]
    waiting = [(run, status) for run, status in waiting if status.state == "waiting"
               and read_owner(run.folder) is None
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
    return order_key(run.folder, status.ticket), run.id


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
