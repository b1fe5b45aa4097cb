"""One batch on several processes.

Each process encodes a part, and all see the embeddings of the whole batch.

Start the processes by `torchrun --nproc-per-node N -m udml_core work RUN --again`. Without a process group there is
one process, and the functions of this module return their inputs.
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
from torch.nn.parallel import DistributedDataParallel

from udml_core.errors import UserError

PATIENCE = timedelta(hours=2)
"""Timeout of the processes that wait while the first one evaluates and writes between epochs."""


@contextmanager
def join_process_group(device: str) -> Iterator[str | None]:
    """Join the process group if `torchrun` started several processes.

    Args:
        device: Device of the first process, `cpu` or `cuda:N`.

    Yields:
        None in the first process, which alone writes; the device in the other processes.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield None
        return
    on_gpu, rank = device.startswith("cuda"), int(os.environ["RANK"])
    own = f"cuda:{os.environ['LOCAL_RANK']}" if on_gpu and rank else device
    if on_gpu:
        torch.cuda.set_device(torch.device(own))
    distributed.init_process_group("nccl" if on_gpu else "gloo", timeout=PATIENCE)
    try:
        yield own if rank else None
    finally:
        distributed.destroy_process_group()


def process_count() -> int:
    """Return the number of processes that share a batch."""
    return distributed.get_world_size() if distributed.is_initialized() else 1


def is_first() -> bool:
    """Return whether this process is the one that writes."""
    return process_count() == 1 or distributed.get_rank() == 0


def cut_to_multiple(batch: Tensor) -> Tensor:
    """Return the longest start of a batch (b,) that the processes share evenly.

    Raises:
        UserError: The batch has fewer images than there are processes.
    """
    if len(batch) < process_count():
        raise UserError(f"A batch needs at least one image for each of the {process_count()} processes; got "
                        f"{len(batch)}. Raise the field 'batch', or start fewer processes.")
    return batch[: len(batch) - len(batch) % process_count()]


def own_part(batch: Tensor) -> tuple[Tensor, int]:
    """Return this process's rows of a batch (b,) and the position of the first.

    Raises:
        ValueError: The batch is not a multiple of the processes; call `cut_to_multiple` first.
    """
    size, rest = divmod(len(batch), process_count())
    if rest:
        raise ValueError(f"a batch that {process_count()} processes share must be a multiple of them, got {len(batch)}")
    if process_count() == 1:
        return batch, 0
    first = distributed.get_rank() * size
    return batch[first : first + size], first


def replicate(network: nn.Module) -> nn.Module:
    """Wrap the network so that its gradients are averaged over the processes."""
    return network if process_count() == 1 else DistributedDataParallel(network, forward_sync_buffers=False)


def without_averaging(network: nn.Module) -> AbstractContextManager[Any]:
    """Suspend the averaging of a `replicate` network.

    Gradients add up until the next pass outside the context.
    """
    return network.no_sync() if isinstance(network, DistributedDataParallel) else nullcontext()


def gather_rows(rows: Tensor, views: int) -> Tensor:
    """Gather the whole batch's rows from all processes.

    Every process computes the same loss of them. Backward, a process takes the gradient of its own rows times the
    number of processes. Averaging over the processes divides by this number, so parameters get the gradient of the
    whole batch.

    Args:
        rows: This process's rows (v·m/p, l), the second views below the first.
        views: Number v of views.

    Returns:
        Rows (v·m, l), all first views, then all second ones.
    """
    if process_count() == 1:
        return rows
    parts: Tensor = _Gather.apply(rows)  # type: ignore[no-untyped-call]
    return parts.unflatten(1, (views, -1)).transpose(0, 1).flatten(0, 2)


class _Gather(torch.autograd.Function):
    """The rows (b, l) of every process, (p, b, l)."""

    @staticmethod
    def forward(_ctx: Any, rows: Tensor) -> Tensor:
        parts = [torch.empty_like(rows) for _ in range(process_count())]
        distributed.all_gather(parts, rows.contiguous())
        return torch.stack(parts)

    @staticmethod
    def backward(_ctx: Any, *gradients: Tensor) -> Tensor:
        return gradients[0][distributed.get_rank()] * process_count()


def agree(tensors: Iterable[Tensor]) -> None:
    """Copy the values of the first process to all processes."""
    if process_count() > 1:
        for tensor in tensors:
            whole = tensor.contiguous()  # the tensor may be a view of a larger array
            distributed.broadcast(whole, 0)
            tensor.copy_(whole)


def average_gradients(module: nn.Module) -> None:
    """Average gradients that every process computed from the same rows.

    Rounding then does not let the processes drift apart.
    """
    if process_count() > 1:
        for parameter in module.parameters():
            if parameter.grad is not None:
                distributed.all_reduce(parameter.grad)
                parameter.grad /= process_count()


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
