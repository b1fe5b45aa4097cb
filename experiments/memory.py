"""The largest memory of this process."""

from __future__ import annotations

import resource
from contextlib import suppress
from pathlib import Path

STATUS = Path("/proc/self/status")


def peak_megabytes() -> float:
    """Return the peak memory of this process in units of 2²⁰ bytes.

    The kernel's record begins when the program starts. `ru_maxrss` begins at the memory of the parent process; it is
    used on systems without the record.
    """
    with suppress(OSError, StopIteration):
        lines = STATUS.read_text(encoding="ascii").splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
