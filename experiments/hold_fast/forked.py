"""Workers in forked children: a kill costs milliseconds in place of the seconds that imports take."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import faiss
import torch
from PIL import Image

OPERATIONS = frozenset({"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link"})
"""Events of Python's audit hooks that touch files; the opening for a sync is one of them."""
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


LATE_IMPORTS = ("sklearn.manifold", "sklearn.neighbors", "sklearn.cluster", "torch._dynamo", "numba", "umap",
                "openTSNE", "pyarrow.parquet")
"""What workers import on first use, and their children would import again after every kill."""


def prepare() -> None:
    """Import what workers need, and keep this process to one thread.

    Threads do not survive a fork, and OpenMP would wait for its own for ever.
    """
    torch.set_num_threads(1)
    faiss.omp_set_num_threads(1)
    for name in LATE_IMPORTS:
        importlib.import_module(name)
    Image.init()


def start(work: Callable[[], object]) -> int:
    """Start a child process that does some work and ends without cleaning up; return its process number."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        work()
        code = 0
    finally:
        os._exit(code)


def in_child(work: Callable[[], object]) -> int:
    """Do some work in a child process and wait for it; return its exit code, negative for a signal."""
    return wait_for(start(work))


def answer_of(work: Callable[[], str | None], report: Path) -> str | None:
    """Return what some work in a child process returns, or the trace of its error.

    Pages start threads, which would hang every later child of the process that opened them.

    Args:
        work: The work.
        report: A file for the answer.
    """
    def write() -> None:
        try:
            answer = work()
        except Exception:
            answer = traceback.format_exc()
        report.write_text(answer or "", encoding="utf-8", errors="replace")

    code = in_child(write)
    return f"the process ended with {code}" if code else report.read_text(encoding="utf-8") or None


def wait_for(child: int) -> int:
    """Wait for a child; it is killed if the waiting is interrupted."""
    try:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise


def killed_after(work: Callable[[], object], seconds: float) -> int:
    """Kill a child after some seconds, unless it ends before; return its exit code."""
    child, deadline = start(work), time.monotonic() + seconds
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    return wait_for(child)


def before_operations(folder: Path, act: Callable[[int, str], None], only_writes: bool = False) -> None:
    """Call a function before each file operation of this process below a folder; what it raises fails the operation.

    Audit hooks cannot be removed, so this belongs into a child.

    Args:
        folder: The folder.
        act: Receives the number of the operation, from 1, and its name.
        only_writes: Leave out files opened for reading.
    """
    beginning, count, busy = str(folder), 0, False

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal count, busy
        if busy or event not in OPERATIONS or not str(arguments[0]).startswith(beginning):
            return
        if only_writes and event == "open" and not int(arguments[2] or 0) & WRITING:  # type: ignore[call-overload]
            return
        busy = True
        try:
            count += 1
            act(count, event)
        finally:
            busy = False

    sys.addaudithook(hook)


def kill_at(folder: Path, number: int) -> None:
    """Kill this process at a file operation below a folder."""
    def act(count: int, _event: str) -> None:
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)

    before_operations(folder, act)
