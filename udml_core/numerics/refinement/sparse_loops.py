"""Compiled loops over sparse neighbor lists, in threads.

The kernels release the interpreter lock and run in Python threads: numba's own threads abort the process if two
sessions of the app compute at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from threading import Lock
from typing import Any, TypeVar, cast

Kernel = TypeVar("Kernel", bound=Callable[..., object])
LEAST = 256
"""Smallest number of rows for which a thread is worth its start."""


def compiled(function: Kernel) -> Kernel:
    """Compile a loop over arrays at its first call; later processes load the compiled code from a file.

    numba takes half a second to import, and a run that is not refined needs no loop. Loops do not call each other.
    """
    lock, ready = Lock(), list[Callable[..., object]]()

    @wraps(function)
    def call(*arguments: Any) -> object:
        with lock:
            if not ready:
                import numba

                ready.append(numba.njit(cache=True, nogil=True)(function))
        return ready[0](*arguments)

    return cast(Kernel, call)


def in_threads(call: Callable[[int, int], object], count: int) -> None:
    """Call `call(start, stop)` on consecutive parts of `count` rows, in as many threads as there are processors."""
    workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    parts = max(1, min(4 * workers, count // LEAST))
    bounds = [count * part // parts for part in range(parts + 1)]
    if parts == 1 or workers == 1:
        call(0, count)
        return
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(call, bounds[:-1], bounds[1:]))
