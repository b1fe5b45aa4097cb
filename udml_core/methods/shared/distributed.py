"""One batch on several processes.

Each process encodes a part, and all see the embeddings of the whole batch.

`udml train --processes N` starts them, with torchrun's agent (see `udml_core.work.workers.elastic`). Without a process
group there is one process, and the functions of this module return their inputs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as distributed
from torch import Tensor, nn
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

PATIENCE = timedelta(hours=2)
"""Timeout of the processes that wait while the first one evaluates and writes between epochs."""


def is_shared() -> bool:
    """Return whether `torchrun` started this process as one of several."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def starts_as_first() -> bool:
    """Return whether this process is alone, or will be the first of the process group."""
    return not is_shared() or os.environ["RANK"] == "0"


def was_restarted() -> bool:
    """Return whether `torchrun` started all processes again, because one of them had died."""
    return is_shared() and _restarts() > 0


def will_restart() -> bool:
    """Return whether `torchrun` starts all processes again if this one fails."""
    return is_shared() and _restarts() < int(os.environ.get("TORCHELASTIC_MAX_RESTARTS", "0"))


def _restarts() -> int:
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


@contextmanager
def join_process_group(device: str) -> Iterator[str | None]:
    """Join the process group if `torchrun` started several processes.

    Args:
        device: Device of the first process, `cpu` or `cuda:N`.

    Yields:
        None in the first process, which alone writes; the device in the other processes.
    """
    if not is_shared():
        yield None
        return
    on_gpu, rank = device.startswith("cuda"), int(os.environ["RANK"])
    own = device
    if on_gpu:
        own = f"cuda:{int(device.partition(':')[2] or 0) + int(os.environ['LOCAL_RANK'])}"
        torch.cuda.set_device(torch.device(own))
    store, _, size = next(rendezvous("env://", timeout=PATIENCE))
    # torchrun's agent keeps one store for all attempts, in which the addresses of ended processes would be found again.
    store = distributed.PrefixStore(f"attempt {_restarts()}", store)  # type: ignore[attr-defined]
    distributed.init_process_group("nccl" if on_gpu else "gloo", timeout=PATIENCE, store=store, rank=rank,
                                   world_size=size)
    try:
        yield own if rank else None
    finally:
        distributed.destroy_process_group()


def process_count() -> int:
    """Return the number of processes that share a batch."""
    return distributed.get_world_size() if distributed.is_initialized() else 1


def is_first() -> bool:
    """Return whether this process is the one that writes."""
    return _rank() == 0


def own_part(batch: Tensor) -> tuple[Tensor, int]:
    """Return this process's rows of a batch (b,) and the position of the first.

    All parts have the same length. If the processes cannot share the batch evenly, the last parts overlap with the
    parts before them, and `gather_rows` takes each row once.
    """
    size = _part_length(len(batch))
    first = min(_rank() * size, len(batch) - size)
    return batch[first : first + size], first


def _rank() -> int:
    return distributed.get_rank() if distributed.is_initialized() else 0


def _part_length(count: int) -> int:
    """Return the number of images in each process's part of `count` images."""
    return -(-count // process_count())


def replicate(network: nn.Module) -> nn.Module:
    """Wrap the network so that its gradients are averaged over the processes."""
    return network if process_count() == 1 else DistributedDataParallel(network, forward_sync_buffers=False)


def without_averaging(network: nn.Module) -> AbstractContextManager[Any]:
    """Suspend the averaging of a `replicate` network.

    Gradients add up until the next pass outside the context.
    """
    return network.no_sync() if isinstance(network, DistributedDataParallel) else nullcontext()


def gather_rows(rows: Tensor, views: int, count: int) -> Tensor:
    """Gather the whole batch's rows from all processes.

    Every process computes the same loss of them. Backward, a process takes the gradient of its own rows times the
    number of processes. Averaging over the processes divides by this number, so parameters get the gradient of the
    whole batch.

    Args:
        rows: Rows (v·s, l) of this process's part of s images, the second views below the first.
        views: Number v of views.
        count: Number m of images in the whole batch.

    Returns:
        Rows (v·m, l), all first views, then all second ones.
    """
    if process_count() == 1:
        return rows
    size = _part_length(count)
    positions = torch.arange(count)
    owner = positions // size
    inside = positions - (owner * size).clamp_max(count - size)  # the last parts start earlier and overlap
    parts: Tensor = _Gather.apply(rows)  # type: ignore[no-untyped-call]
    images = parts.unflatten(1, (views, -1)).transpose(1, 2).flatten(0, 1)
    return images.index_select(0, (owner * size + inside).to(rows.device)).transpose(0, 1).flatten(0, 1)


class _Gather(torch.autograd.Function):
    """The rows (b, l) of every process, (p, b, l)."""

    @staticmethod
    def forward(_ctx: Any, rows: Tensor) -> Tensor:
        parts = [torch.empty_like(rows) for _ in range(process_count())]
        distributed.all_gather(parts, rows.contiguous())
        return torch.stack(parts)

    @staticmethod
    def backward(_ctx: Any, *gradients: Tensor) -> Tensor:
        return gradients[0][_rank()] * process_count()


def agree(tensors: Iterable[Tensor]) -> None:
    """Copy the values of the first process to all processes."""
    if process_count() > 1:
        _apply_jointly(lambda values: distributed.broadcast(values, 0), tensors)


def agree_on_number(number: int) -> int:
    """Return the first process's number in all processes."""
    shared = torch.tensor(number)
    agree([shared])
    return int(shared)


def agree_on_search(point: tuple[Tensor, ...], step: float) -> float:
    """Copy the point and the step length of a line search from the first process to all processes.

    A line search turns a difference in rounding into another step.

    Returns:
        The step length of the first process.
    """
    length = torch.tensor(step, dtype=torch.float64)
    agree([*point, length])
    return float(length)


def average_gradients(parameters: Iterable[Tensor]) -> None:
    """Average gradients over the processes.

    For the network's gradients of its own rows, this gives the gradient of the whole batch (see `gather_rows`). Where
    every process computed gradients from the same rows, rounding then does not let the processes drift apart.
    """
    if process_count() > 1:
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        _apply_jointly(distributed.all_reduce, gradients)
        for gradient in gradients:
            gradient /= process_count()


def _apply_jointly(operation: Callable[[Tensor], Any], tensors: Iterable[Tensor]) -> None:
    """Apply an operation on all processes to the values of tensors, in place.

    Tensors of one type are joined, because each operation costs a message to every process.
    """
    device = torch.device("cuda" if distributed.get_backend() == "nccl" else "cpu")
    groups: dict[torch.dtype, list[Tensor]] = {}
    for tensor in tensors:
        groups.setdefault(tensor.dtype, []).append(tensor.detach())
    for group in groups.values():
        joined = torch.cat([tensor.flatten() for tensor in group]).to(device)
        operation(joined)
        for tensor, values in zip(group, joined.split([tensor.numel() for tensor in group]), strict=True):
            tensor.copy_(values.view_as(tensor))


def read_ahead(read: Callable[[Tensor], Tensor], batches: Iterable[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield each batch with its input, and read the next input in the background."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        waiting: list[tuple[Tensor, Any]] = []
        for batch in batches:
            waiting.append((batch, pool.submit(read, batch)))
            if len(waiting) > 1:
                first, future = waiting.pop(0)
                yield first, future.result()
        for first, future in waiting:
            yield first, future.result()
