"""One batch on several processes: each encodes a part, all see the whole batch's embeddings.

Started by `torchrun --nproc-per-node N -m udml_core work RUN --again`; without a process group there is one process,
and nothing here does anything.
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
"""For the first process, which measures and writes between epochs while the others wait."""


@contextmanager
def together(device: str) -> Iterator[str | None]:
    """Work in the processes that `torchrun` started, if it did.

    Args:
        device: what the first process works on, `cpu` or `cuda:N`.

    Yields:
        None in the first process, which alone writes; in the others, the device that they help on.
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


def processes() -> int:
    """How many processes work on a batch together."""
    return distributed.get_world_size() if distributed.is_initialized() else 1


def is_first() -> bool:
    """Whether this process is the one that writes, or alone."""
    return processes() == 1 or distributed.get_rank() == 0


def divisible(batch: Tensor) -> Tensor:
    """As many first rows of a batch (b,) as the processes can share evenly.

    Raises:
        UserError: a process would get none.
    """
    if len(batch) < processes():
        raise UserError(f"{processes()} processes share every batch, which needs at least as many images, got "
                        f"{len(batch)}. Raise the field 'batch', or start fewer processes.")
    return batch[: len(batch) - len(batch) % processes()]


def own_part(batch: Tensor) -> tuple[Tensor, int]:
    """This process's rows of a batch (b,) that `divisible` gave, and where they begin."""
    size, rest = divmod(len(batch), processes())
    if rest:
        raise ValueError(f"a batch that {processes()} processes share must be a multiple of them, got {len(batch)}")
    if processes() == 1:
        return batch, 0
    first = distributed.get_rank() * size
    return batch[first : first + size], first


def replicated(network: nn.Module) -> nn.Module:
    """The network with its gradients averaged over the processes."""
    return network if processes() == 1 else DistributedDataParallel(network, forward_sync_buffers=False)


def without_averaging(network: nn.Module) -> AbstractContextManager[Any]:
    """Where gradients of a `replicated` network are only added up, for the averaging to follow later."""
    return network.no_sync() if isinstance(network, DistributedDataParallel) else nullcontext()


def gathered(rows: Tensor, views: int) -> Tensor:
    """The whole batch's rows (v·m, l) from each process's (v·m/p, l): all first views, then all second ones.

    Every process computes the same loss of them. Backward a process takes its own rows' gradient, times the number of
    processes, which the averaging over them divides by: parameters get the whole batch's gradient.
    """
    if processes() == 1:
        return rows
    parts: Tensor = _Gather.apply(rows)  # type: ignore[no-untyped-call]
    return parts.unflatten(1, (views, -1)).transpose(0, 1).flatten(0, 2)


class _Gather(torch.autograd.Function):
    """Rows (b, l) of every process, (p, b, l)."""

    @staticmethod
    def forward(_ctx: Any, rows: Tensor) -> Tensor:
        parts = [torch.empty_like(rows) for _ in range(processes())]
        distributed.all_gather(parts, rows.contiguous())
        return torch.stack(parts)

    @staticmethod
    def backward(_ctx: Any, *gradients: Tensor) -> Tensor:
        return gradients[0][distributed.get_rank()] * processes()


def agree(tensors: Iterable[Tensor]) -> None:
    """Give every process the first one's values, also where they are a part of a larger array."""
    if processes() > 1:
        for one in tensors:
            whole = one.contiguous()
            distributed.broadcast(whole, 0)
            one.copy_(whole)


def average_gradients(module: nn.Module) -> None:
    """Of what every process computes from the same gathered rows, so that rounding does not lead them apart."""
    if processes() > 1:
        for one in module.parameters():
            if one.grad is not None:
                distributed.all_reduce(one.grad)
                one.grad /= processes()


def read_ahead(read: Callable[[Tensor], Tensor], batches: Iterable[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
    """Each batch with what is read for it; while one is worked on, the next is read."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        waiting: list[tuple[Tensor, Any]] = []
        for batch in batches:
            waiting.append((batch, pool.submit(read, batch)))
            if len(waiting) > 1:
                first, found = waiting.pop(0)
                yield first, found.result()
        for first, found in waiting:
            yield first, found.result()
