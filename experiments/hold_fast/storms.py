"""Storms of stops, resumes, moves and kills on real queues: workers, dispatchers, servers and the command line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import psutil
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect

from experiments.hold_fast.attempt import Hostility, count_event, note_figure
from experiments.hold_fast.small_runs import difference, finished_epochs, planned, undisturbed
from experiments.real_server import serving
from udml_core.base.errors import UserError
from udml_core.runs import Run
from udml_core.runs.tasks import LIVE_STATES
from udml_core.work import jobs

RUNS = 2
METHODS = ("rpml", "triplet", "pslr")
FIELDS = {"epochs": 40}
"""Long enough that most deeds meet a working run."""
TOGETHER = 600.0
"""Seconds for which two servers and the command line share a folder of runs in the part `together`."""
EXITING = 30.0
"""Seconds that a stopped worker may take to end after it has released its lock, on a busy machine."""
KILLED: Counter[str] = Counter()
"""Processes killed in an attempt, by the last word of their command."""
Deed = Callable[[np.random.Generator, list[Run]], None]
ANSWERING = 120.0
"""Seconds that a server has to answer."""


def visit(url: str, page: str, query: str = "") -> float:
    """Open a page in a session of its own, as a browser's tab does.

    Returns:
        Seconds until the page was complete.

    Raises:
        AssertionError: The page shows an exception, or did not end in time.
    """
    began = time.monotonic()
    with connect(f"{url.replace('http', 'ws')}/_stcore/stream", subprotocols=["streamlit"],  # type: ignore[list-item]
                 max_size=None, origin=url) as session:  # type: ignore[arg-type]
        request = BackMsg()
        request.rerun_script.query_string = query
        request.rerun_script.page_name = page
        session.send(request.SerializeToString())
        while time.monotonic() - began < ANSWERING:
            message = ForwardMsg()
            message.ParseFromString(session.recv(timeout=ANSWERING))  # type: ignore[arg-type]
            kind = message.WhichOneof("type")
            shown = message.delta.new_element if kind == "delta" else None
            if shown is not None and shown.WhichOneof("type") == "exception":
                raise AssertionError(f"{page}: {shown.exception.type}: {shown.exception.message}")
            if kind == "script_finished":
                return time.monotonic() - began
    raise AssertionError(f"{page} was not complete after {ANSWERING:g} seconds")


def processes(root: Path, word: str = "") -> list[psutil.Process]:
    """Return the living processes that work below a folder, by a word of their command line."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        words = process.info["cmdline"] or []
        if process.info["status"] != psutil.STATUS_ZOMBIE and any(part.startswith(str(root)) for part in words) \
                and any(part.endswith(word) for part in words):
            found.append(process)
    return found


def workers_of(run: Run) -> list[psutil.Process]:
    """Return the workers of a run; one that is ending has time for it, because its dispatcher may have been killed."""
    deadline = time.monotonic() + EXITING
    while len(workers := processes(run.folder, str(run.folder))) > 1 and time.monotonic() < deadline:
        time.sleep(0.5)
    return workers


def stop(random: np.random.Generator, runs: list[Run]) -> None:
    """Stop a run."""
    jobs.stop(_any(random, runs))


def resume(random: np.random.Generator, runs: list[Run]) -> None:
    """Resume a run."""
    jobs.resume(_any(random, runs))


def reorder(random: np.random.Generator, runs: list[Run]) -> None:
    """Move a run in the queue."""
    jobs.move(_any(random, runs), int(random.integers(3)))


def kill_worker(_random: np.random.Generator, runs: list[Run]) -> None:
    """Kill the workers."""
    _kill(runs[0].folder.parent, "work")


def kill_dispatcher(_random: np.random.Generator, runs: list[Run]) -> None:
    """Kill the dispatcher."""
    _kill(runs[0].folder.parent, "dispatch.py")


def wake(_random: np.random.Generator, runs: list[Run]) -> None:
    """Wake the queue, as every start of the app does."""
    jobs.wake(runs[0].folder.parent)


def call(random: np.random.Generator, runs: list[Run]) -> None:
    """Stop or resume a run by the command line."""
    run = _any(random, runs)
    word = str(random.choice(["stop", "resume", "runs"]))
    words = [sys.executable, "-m", "udml_core", word, *([run.id] if word != "runs" else []),
             "--runs", str(run.folder.parent)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert "Traceback" not in done.stderr, f"{word}: {done.stderr}"


DEEDS: tuple[Deed, ...] = (stop, resume, resume, reorder, kill_worker, kill_dispatcher, wake)


def storm(random: np.random.Generator, scratch: Path) -> str | None:
    """Do ten random things to a queue, then let it end."""
    runs, wholes = _submit(random, scratch)
    with _ended(scratch):
        broken = _storm(random, runs, DEEDS, 10)
        _note_kills()
        return broken or _finish(runs, wholes)


def serve(random: np.random.Generator, scratch: Path, seconds: float = 0.0) -> str | None:
    """Disturb a queue from two servers and the command line, and kill the servers.

    Args:
        random: Chooses what is done.
        scratch: The folder of runs.
        seconds: Time during which five random things are done again and again; once by default.
    """
    began = time.monotonic()
    runs, wholes = _submit(random, scratch)
    environment = os.environ | {"UDML_RUNS": str(scratch)}
    with _ended(scratch), serving("serve.py", environment) as (first, server), \
            serving("serve.py", environment) as (second, other):
        def see(_random: np.random.Generator, _runs: list[Run]) -> None:
            for url in (first, second):
                visit(url, "runs")

        broken = _storm(random, runs, (*DEEDS, call, call, see, see), 5)
        while broken is None and time.monotonic() - began < seconds:
            with suppress(UserError):  # a run that is not done works on, so that there is something to disturb
                resume(random, runs)
            broken = _storm(random, runs, (*DEEDS, call, call, see, see), 5)
        for process in (server, other):
            if zombies := [child for child in psutil.Process(process.pid).children()
                           if child.status() == psutil.STATUS_ZOMBIE]:
                time.sleep(1.0)  # a reaper may be about to run
                broken = broken or (f"a server keeps {zombies}" if any(child.is_running() and child.status()
                                    == psutil.STATUS_ZOMBIE for child in zombies) else None)
            process.kill()
            process.wait(60)
            count_event()
        _note_kills(servers=2)
        return broken or _finish(runs, wholes)


def _note_kills(servers: int = 0) -> None:
    """Note how many processes of each kind an attempt has killed."""
    for name, count in (("workers", KILLED["work"]), ("dispatchers", KILLED["dispatch.py"]), ("servers", servers)):
        note_figure(f"killed {name}", count)


def _submit(random: np.random.Generator, root: Path) -> tuple[list[Run], list[Run]]:
    methods = [str(method) for method in random.choice(METHODS, RUNS)]
    wholes = [undisturbed(method, **FIELDS) for method in methods]
    return [jobs.submit(planned(method, **FIELDS), root) for method in methods], wholes


def _storm(random: np.random.Generator, runs: list[Run], deeds: tuple[Deed, ...], count: int) -> str | None:
    """Do random things to a queue; return what is wrong in between."""
    epochs = dict.fromkeys(runs, 0)
    KILLED.clear()
    for _ in range(count):
        deed = deeds[int(random.integers(len(deeds)))]
        with suppress(UserError):
            deed(random, runs)
        count_event()
        time.sleep(float(random.random()) * 2.5)
        for run in runs:
            if len(workers := workers_of(run)) > 1:
                return f"after {deed.__name__} {run.id} has {len(workers)} workers"
            finished = finished_epochs(run) if run.metrics()[0] and run.read_checkpoint() else 0
            if finished < epochs[run]:
                return f"after {deed.__name__} {run.id} has {finished} of {epochs[run]} finished epochs"
            epochs[run] = finished
    return None


def _finish(runs: list[Run], wholes: list[Run], seconds: float = 200) -> str | None:
    """Resume what ended, wait for the queue, and compare the results."""
    deadline = time.monotonic() + seconds
    jobs.wake(runs[0].folder.parent)
    while (left := [run for run in runs if run.status().state != "done"]):
        for run in left:
            if run.status().state not in LIVE_STATES:
                if run.status().state == "failed":
                    return f"{run.id} failed: {run.status().message}"
                with suppress(UserError):
                    jobs.resume(run)
        if time.monotonic() > deadline:
            return f"the queue does not end: {[run.status() for run in left]}"
        time.sleep(0.5)
    for run, whole in zip(runs, wholes, strict=True):
        if broken := difference(run, whole):
            return broken
    zombies = [child for child in psutil.Process().children() if child.status() == psutil.STATUS_ZOMBIE]
    if zombies:
        time.sleep(1.0)  # a reaper may be about to run
    zombies = [child for child in zombies if child.is_running() and child.status() == psutil.STATUS_ZOMBIE]
    return f"zombies: {zombies}" if zombies else None


def _any(random: np.random.Generator, runs: list[Run]) -> Run:
    return runs[int(random.integers(len(runs)))]


def _kill(root: Path, word: str) -> None:
    for process in processes(root, word):
        with suppress(psutil.Error):
            process.send_signal(signal.SIGKILL)
            KILLED[word] += 1


@contextmanager
def _ended(root: Path) -> Iterator[None]:
    """End everything that works below a folder at last."""
    try:
        yield
    finally:
        for word in ("dispatch.py", ""):
            _kill(root, word)


PARTS = (Hostility("storms", storm, weight=2, limit=400, seconds=45),
         Hostility("servers", serve, limit=500, seconds=90),
         Hostility("together", lambda random, scratch: serve(random, scratch, TOGETHER), limit=1500, seconds=700,
                   on_request=True))
