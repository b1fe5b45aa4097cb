"""Break the source on purpose, one line at a time, and report which mutants no test notices.

`mutants.toml` lists the mutants with the tests meant to catch them. The sources are copied to a temporary folder and
changed there only. Run `make mutants`, or `python -m tests.mutants --only NAME` for a single mutant.
"""

from __future__ import annotations

import argparse
import importlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("mutants.toml")
SECONDS, ALL_SECONDS = 300, 3600
"""Time limits of a mutant's tests and of the run without a mutant."""
PRELOADED = ("torch", "scipy.optimize", "scipy.sparse.linalg", "sklearn.neighbors", "sklearn.cluster", "hypothesis",
             "pydantic", "faiss", "numba", "PIL.Image")


@dataclass(frozen=True)
class Mutant:
    """A change of one line.

    Attributes:
        name: Unique name.
        file: Source file, relative to the checkout.
        kind: Kind of the mistake.
        old: Text that occurs exactly once in the file.
        new: Text in place of it.
        tests: Test files, or tests `FILE::NAME`, meant to catch the mutant.
        reason: Why no test can catch it; empty if a test must.
    """

    name: str
    file: str
    kind: str
    old: str
    new: str
    tests: tuple[str, ...]
    reason: str = ""

    def apply(self, root: Path) -> str:
        """Change the file below `root` and return its previous text."""
        path = root / self.file
        before = path.read_text(encoding="utf-8")
        path.write_text(before.replace(self.old, self.new), encoding="utf-8")
        return before


def load() -> list[Mutant]:
    """Read the list of mutants."""
    rows = tomllib.loads(LIST.read_text(encoding="utf-8"))["mutant"]
    return [Mutant(**row | {"tests": tuple(row["tests"])}) for row in rows]


class FirstFailure:
    """A pytest plugin that writes the name of the first failed test, or of a file that cannot be imported."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.pytest_collectreport(report)

    def pytest_collectreport(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.failed and not self.path.exists():
            self.path.write_text(report.nodeid, encoding="utf-8")


def start_tests(root: Path, tests: Iterable[str]) -> int:
    """Run tests of a copy in a forked process and return its number.

    Libraries are loaded before the fork, because they take longer to load than most of the tests take to run.
    """
    (root / "failed").unlink(missing_ok=True)
    process = os.fork()
    if process:
        return process
    code = 3
    try:
        os.setsid()
        for stream in (1, 2):
            os.dup2(os.open(root / "output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
        os.chdir(root)
        os.environ["PYTHONPATH"] = str(root)
        for name in [name for name in sys.modules if name.partition(".")[0] in ("tests", "udml_core")]:
            del sys.modules[name]
        sys.path[:] = [str(root), *(entry for entry in sys.path if entry and Path(entry).resolve() != ROOT)]
        plugins = [FirstFailure(root / "failed")]
        code = int(pytest.main(["-x", "-q", "--tb=short", f"--basetemp={root}/temporary", *tests], plugins))
    finally:
        sys.stdout.flush()
        os._exit(code)


def run(roots: Sequence[Path], mutants: Sequence[Mutant]) -> list[Mutant]:
    """Test every mutant, as many at a time as there are copies, print the table and return unexplained survivors."""
    waiting, free, survivors = list(mutants), list(roots), []
    running: dict[int, tuple[Mutant, Path, str, float]] = {}
    while waiting or running:
        while waiting and free:
            mutant, root = waiting.pop(0), free.pop()
            before = mutant.apply(root)
            running[start_tests(root, mutant.tests)] = mutant, root, before, time.monotonic()
        time.sleep(0.1)
        for process, (mutant, root, before, began) in list(running.items()):
            result, seconds = finished(process, root, time.monotonic() - began, SECONDS), time.monotonic() - began
            if result is not None:
                (root / mutant.file).write_text(before, encoding="utf-8")
                free.append(running.pop(process)[1])
                verdict = result or "SURVIVED" + (f" ({mutant.reason})" if mutant.reason else "")
                survivors += [mutant] if not result and not mutant.reason else []
                print(f"{mutant.name:38} {mutant.kind:22} {seconds:5.0f} s  {verdict}", flush=True)
    return survivors


def finished(process: int, root: Path, seconds: float, limit: float) -> str | None:
    """Return None while the tests run, then the first failed test, or an empty text if all passed."""
    done, status = os.waitpid(process, os.WNOHANG)
    if not done and seconds < limit:
        return None
    if not done:
        os.killpg(process, signal.SIGKILL)
        os.waitpid(process, 0)
        return "the time limit"
    failed = root / "failed"
    if failed.exists():
        return failed.read_text(encoding="utf-8")
    if status:
        raise SystemExit(f"pytest could not run the tests:\n{(root / 'output').read_text(errors='replace')[-3000:]}")
    return ""


def copy_checkout(target: Path) -> Path:
    """Copy the checkout's files without what git ignores, and return the folder."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                            capture_output=True, text=True, check=True).stdout.split("\0")
    for name in filter(None, listed):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name)
    return target


def main() -> int:
    """Run the command; the exit code is 1 if a mutant without a reason survives."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description="Test the tests with broken sources.")
    parser.add_argument("--only", metavar="NAME", action="append", help="test this mutant; may be repeated")
    parser.add_argument("--jobs", type=int, default=1, help="mutants tested at the same time, default 1")
    parser.add_argument("--list", action="store_true", help="print the mutants and test nothing")
    options = parser.parse_args()
    mutants = [mutant for mutant in load() if not options.only or mutant.name in options.only]
    if options.list or not mutants:
        print(*(f"{mutant.name:38} {mutant.kind:22} {mutant.file}" for mutant in mutants), sep="\n")
        return 0 if options.list else f"No mutant has the name {', '.join(options.only)}."
    sys.dont_write_bytecode = True  # a file that changes twice within a second would keep its old bytecode
    for name, value in {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "PYTHONDONTWRITEBYTECODE": "1"}.items():
        os.environ.setdefault(name, value)
    for module in PRELOADED:
        importlib.import_module(module)
    with tempfile.TemporaryDirectory() as folder:
        roots = [copy_checkout(Path(folder) / str(number)) for number in range(max(1, options.jobs))]
        began, failed = time.monotonic(), None
        process = start_tests(roots[0], sorted({test for mutant in mutants for test in mutant.tests}))
        while failed is None:
            time.sleep(0.1)
            failed = finished(process, roots[0], time.monotonic() - began, ALL_SECONDS)
        if failed:
            print((roots[0] / "output").read_text(errors="replace")[-3000:])
            return f"Without a mutant, {failed} fails. Repair it first."
        print(f"{'without a mutant':61} {time.monotonic() - began:5.0f} s  all tests pass", flush=True)
        survivors = run(roots, mutants)
    print(f"{len(mutants)} mutants, {len(survivors)} survive without a reason.")
    return bool(survivors)


if __name__ == "__main__":
    sys.exit(main())
