"""Keep freed memory in the process (glibc only).

By default glibc returns every large block to the kernel when it is freed. Each convolution then maps its buffers
again, and the page faults cost as much as the arithmetic. Higher thresholds keep the blocks for the next layer.
"""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress

THRESHOLD = 1 << 30
"""Bytes: smaller blocks stay on the heap, and up to this much free memory stays at its end."""
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3


def keep_freed_memory() -> bool:
    """Raise glibc's thresholds in this process; return whether it is a glibc process."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return False
    return bool(mallopt(M_MMAP_THRESHOLD, THRESHOLD)) and bool(mallopt(M_TRIM_THRESHOLD, THRESHOLD))


def release_freed_memory() -> None:
    """Give freed memory back to the system after a phase, where glibc keeps it; the next phase has blocks of others."""
    if sys.platform.startswith("linux"):
        with suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)
