"""Calls in a process of their own with a limit on its memory, for files that users hand in.

A file of a few megabytes can declare, or decompress to, more than a computer has. The server therefore reads such files
in a child of a small process that has imported the readers; the child for the next call waits already. Without
`start`, as in the command line and in workers, which no other user shares, and where processes cannot fork, a call is a
plain call.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import psutil

from udml_core.base.errors import UserError, byte_words
from udml_core.base.paths import python_path

VARIABLE = "UDML_READ_GB"
"""The environment variable that sets the limit."""
USUAL, SMALLEST, LARGEST = 4e9, 0.5e9, 1e15
"""The limit in bytes on a computer with twice as much memory, and the smallest and largest limit."""
Result = TypeVar("Result")
_LENGTH = struct.Struct("<Q")
_forks: _Forks | None = None


def limit() -> float:
    """Return the bytes that a call may use: `UDML_READ_GB`, or 4 GB but at most half of the computer's memory.

    A value that is no positive number, or more than 1,000 TB, is as if there was none.
    """
    with contextlib.suppress(KeyError, ValueError):
        given = 1e9 * float(os.environ[VARIABLE])
        if 0 < given <= LARGEST:
            return max(SMALLEST, given)
    return max(SMALLEST, min(USUAL, psutil.virtual_memory().total / 2))


def start(modules: Sequence[str] = ()) -> None:
    """Bound the calls of this process from now on.

    Args:
        modules: Modules that the calls need, which are imported once.
    """
    global _forks
    if sys.platform == "linux" and _forks is None:
        _forks = _Forks(modules)


def is_on() -> bool:
    """Return whether calls are bounded."""
    return _forks is not None


def stop() -> None:
    """Make plain calls again."""
    global _forks
    if _forks is not None:
        _forks.close()
        _forks = None


def call(what: str, function: Callable[..., Result], *args: Any, extra: int = 0,
         report: Callable[[float, str], None] | None = None) -> Result:
    """Call a function of a module, in a process with a limit if `start` was called.

    Args:
        what: The file, for the message that it needs too much memory.
        function: The function. Arguments and result are copied between the processes.
        *args: Its arguments.
        extra: Further bytes that the call may map, such as the length of a file.
        report: Receives the progress, if the function has an argument of this name.

    Raises:
        UserError: The call needs more memory, or its process ended.
    """
    if _forks is None:
        return function(*args) if report is None else function(*args, report=report)
    with _forks.child() as stream:
        _send(stream, (what, function, args, limit(), extra, report is not None))
        while True:
            try:
                kind, content = _receive(stream)
            except (EOFError, OSError):
                raise _too_large(what, limit()) from None
            if kind == "report" and report is not None:
                report(*content)
            elif kind == "error":
                error, values, state = content
                raised = error.__new__(error, *values)
                raised.__dict__.update(state)
                raise raised
            elif kind == "result":
                result: Result = content
                return result


def _too_large(what: str, most: float) -> UserError:
    total = psutil.virtual_memory().total
    return UserError(f"{what} needs more than {byte_words(most)} of memory, the most that the server gives to one file "
                     f"of {byte_words(total)} in this computer. Use a smaller file, or start the server with a larger "
                     f"limit, such as {VARIABLE}=16.")


class _Forks:
    """A process that imports modules once, and forks a child for each call, before the call."""

    def __init__(self, modules: Sequence[str]) -> None:
        self._modules, self._changing = modules, threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._waiting: socket.socket | None = None
        self._is_closed = False
        self._socket: socket.socket | None = None
        self._begin()

    def _begin(self) -> None:
        self._socket, theirs = socket.socketpair()
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")  # a fork has one thread only
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__, str(theirs.fileno()), *self._modules], pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL, env=os.environ | threads | {"PYTHONPATH": python_path()})
        theirs.close()

    @contextlib.contextmanager
    def child(self) -> Iterator[io.BufferedRWPair]:
        """Yield a stream to a child of its own, which ends when the stream is closed; then the next child is forked."""
        with self._changing:
            ours, self._waiting = self._waiting, None
            if ours is None or not _waits(ours):
                ours = self._fork()
        try:
            with ours, ours.makefile("rwb") as stream:
                yield stream
        finally:
            with self._changing:
                if self._waiting is None and not self._is_closed:
                    self._waiting = self._fork()

    def _fork(self) -> socket.socket:
        """Return a connection to a new child."""
        ours, theirs = socket.socketpair()
        with theirs:
            assert self._socket is not None
            try:
                socket.send_fds(self._socket, [b"+"], [theirs.fileno()])
            except OSError:  # someone ended the process
                self._end()
                self._begin()
                socket.send_fds(self._socket, [b"+"], [theirs.fileno()])
        return ours

    def close(self) -> None:
        """End the process, which holds nothing, even while it imports. Calls in progress go on in children."""
        with self._changing:
            self._is_closed = True
            if self._waiting is not None:
                self._waiting.close()
            self._end()

    def _end(self) -> None:
        if self._socket is not None and self._process is not None:
            self._socket.close()
            self._process.kill()
            self._process.wait()


def _waits(connection: socket.socket) -> bool:
    """Return whether the process at the other end, which sends nothing before it is asked, was not ended."""
    try:
        return bool(connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    except BlockingIOError:
        return True
    except OSError:
        return False


def _send(stream: io.BufferedRWPair, message: Any) -> None:
    content = pickle.dumps(message)
    stream.write(_LENGTH.pack(len(content)))
    stream.write(content)
    stream.flush()


def _receive(stream: io.BufferedRWPair) -> Any:
    """Return a message. Both processes run the same code for the same user, so unpickling trusts no one new."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    return pickle.loads(stream.read(*_LENGTH.unpack(head)))


def _serve(number: int, modules: Sequence[str]) -> None:
    """Fork a child for each stream that arrives, until the server closes its end."""
    requests = socket.socket(fileno=number)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C ends the server, which then closes its end
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # ended children leave nothing
    for module in modules:
        with contextlib.suppress(Exception):  # the call that needs it shows the error
            importlib.import_module(module)
    while True:
        content, numbers, _, _ = socket.recv_fds(requests, 1, 1)
        if not content:
            return
        if os.fork() == 0:
            requests.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            with contextlib.suppress(EOFError, ConnectionError), socket.socket(fileno=numbers[0]) as ours, \
                    ours.makefile("rwb") as stream:
                _answer(stream)
            os._exit(0)  # without what the parent would do at its end
        os.close(numbers[0])


def _answer(stream: io.BufferedRWPair) -> None:
    """Read a call, make it within its limit, and send what comes of it."""
    import resource

    process = psutil.Process()
    what, function, args, most, extra, reports = _receive(stream)
    space = int(process.memory_info().vms + most + extra)
    resource.setrlimit(resource.RLIMIT_AS, (space, space))
    with contextlib.suppress(OSError):  # if memory runs out nevertheless, this process goes, not the server
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    options = {"report": lambda *progress: _send(stream, ("report", progress))} if reports else {}
    try:
        message = "result", function(*args, **options)
    except ConnectionError:  # the server no longer waits
        raise
    except Exception as error:
        message = "error", _portable(_too_large(what, most) if _lacks_memory(error) else error)
    try:
        _send(stream, message)
    except MemoryError:
        _send(stream, ("error", _portable(_too_large(what, most))))


def _lacks_memory(error: BaseException | None) -> bool:
    """Return whether an error, or what led to it, is a lack of memory."""
    while error is not None:
        if isinstance(error, MemoryError) or "bad_alloc" in str(error) or "Cannot allocate memory" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _portable(error: Exception) -> tuple[type[Exception], tuple[Any, ...], dict[str, Any]]:
    """Return the type, the arguments and the attributes of an error; its traceback as text if it cannot be copied."""
    values = error.args
    if isinstance(error, OSError) and error.filename is not None:
        values = error.errno, error.strerror, error.filename
    content = type(error), values, {name: value for name, value in vars(error).items() if name[0] != "_"}
    try:
        pickle.dumps(content)
    except Exception:
        return RuntimeError, ("".join(traceback.format_exception(error)),), {}
    return content


if __name__ == "__main__":
    _serve(int(sys.argv[1]), sys.argv[2:])
