"""The largest memory of this process."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_forgotten = 0.0


def largest_memory() -> float:
    """Return the largest of all values of `peak_memory` in this process, whatever was forgotten."""
    return max(_forgotten, peak_memory())


def peak_memory() -> float:
    """Return the largest resident memory of this process in bytes, mapped files included.

    On Linux the record begins when the program starts, or at `forget_peak`. `ru_maxrss` begins at the memory of the
    parent process; it is used on systems without the record. Windows has neither: 0.
    """
    with suppress(OSError, StopIteration):
        lines = STATUS.read_text(encoding="ascii").splitlines()
        return 1024.0 * int(next(line for line in lines if line.startswith("VmHWM:")).split()[1])
    with suppress(ImportError):
        import resource

        return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * (1 if sys.platform == "darwin" else 1024)
    return 0.0


def forget_peak() -> None:
    """Begin the record of `peak_memory` again at the memory of now, where the system can."""
    global _forgotten
    _forgotten = largest_memory()
    with suppress(OSError):
        RESET.write_text("5", encoding="ascii")
