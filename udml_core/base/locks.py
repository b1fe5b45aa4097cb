"""Locks inside folders that another process may remove at any time.

filelock creates the folder of a lock, so that a look at a removed run would bring back an empty folder. These
functions create no folder. They hold the same locks as `FileLock`, and need only the standard library and filelock.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

if sys.platform != "win32":
    import fcntl

POLL = 0.02
"""Seconds between two attempts."""


@contextmanager
def held(path: Path, seconds: float) -> Iterator[None]:
    """Hold a lock.

    Args:
        path: The lock's file, which is created; its folder is not.
        seconds: Seconds to wait for another process.

    Raises:
        Timeout: Another process holds it.
        OSError: The folder is missing, or does not allow it.
    """
    if sys.platform == "win32":  # a folder with an open file cannot be removed there
        with FileLock(path).acquire(timeout=seconds, poll_interval=POLL):
            yield
        return
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    try:
        deadline = time.monotonic() + seconds
        while not _locked(file, fcntl.LOCK_EX):
            if time.monotonic() >= deadline:
                raise Timeout(str(path))
            time.sleep(POLL)
        if not os.fstat(file).st_nlink:
            raise FileNotFoundError(errno.ENOENT, "the lock was removed", str(path))
        yield
    finally:
        os.close(file)


def is_held(path: Path) -> bool:
    """Return whether a process holds a lock; none does if its file is missing.

    Raises:
        OSError: The file cannot be opened.
    """
    if sys.platform == "win32":
        if not path.exists():
            return False
        try:
            with FileLock(path).acquire(timeout=0):
                return False
        except Timeout:
            return True
    try:
        file = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        return False
    try:
        return not _locked(file, fcntl.LOCK_SH)  # readers do not hold each other up
    finally:
        os.close(file)


def _locked(file: int, kind: int) -> bool:
    """Return whether an open file could be locked at once."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise
        return False
    return True
