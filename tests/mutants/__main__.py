"""Break the source on purpose, one line at a time, and report which mutants no test notices.

`mutants.toml` lists the mutants with the tests meant to catch them. Sources are changed in a temporary copy only.
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
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from tests.mutants import ROOT, Mutant, load

SECONDS, ALL_SECONDS = 300, 3600
"""Time limits of a mutant's tests and of the run without a mutant."""
PRELOADED = ("torch", "scipy.optimize", "scipy.sparse.linalg", "sklearn.cluster", "pydantic", "faiss", "numba")


class FirstFailure:
    """A pytest plugin that writes the name of the first failed test, or of a file that cannot be imported."""

    def pytest_runtest_logreport(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.failed and not Path("failed").exists():
            Path("failed").write_text(report.nodeid, encoding="utf-8")

    pytest_collectreport = pytest_runtest_logreport


class Tests:
    """Tests of a copy of the checkout, with or without a mutant, in a forked process.

    Libraries are loaded before the fork, because they take longer to load than most of the tests take to run.
    """

    def __init__(self, root: Path, tests: Iterable[str], mutant: Mutant | None = None) -> None:
        self.root, self.mutant, self.began = root, mutant, time.monotonic()
        (root / "failed").unlink(missing_ok=True)
        if mutant:
            self.source = (root / mutant.file).read_text(encoding="utf-8")
            (root / mutant.file).write_text(self.source.replace(mutant.old, mutant.new), encoding="utf-8")
        self.process = os.fork() or self._run(tests)

    def _run(self, tests: Iterable[str]) -> int:
        try:
            os.setsid()  # the time limit also ends processes that a test has started
            for stream in (1, 2):
                os.dup2(os.open(self.root / "output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
            os.chdir(self.root)
            os.environ["PYTHONPATH"] = str(self.root)
            for name in [name for name in sys.modules if name.partition(".")[0] in ("tests", "udml_core")]:
                del sys.modules[name]
            sys.path[:] = [str(self.root), *(entry for entry in sys.path if entry and Path(entry).resolve() != ROOT)]
            code = int(pytest.main(["-x", "-q", f"--basetemp={self.root}/temporary", *tests], [FirstFailure()]))
            sys.stdout.flush()
            os._exit(code)
        finally:
            os._exit(3)

    def result(self, limit: float) -> str | None:
        """Return None while the tests run, then the first failed test, or an empty text if all passed."""
        done, status = os.waitpid(self.process, os.WNOHANG)
        if not done and time.monotonic() - self.began < limit:
            return None
        if not done:
            os.killpg(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
        if self.mutant:
            (self.root / self.mutant.file).write_text(self.source, encoding="utf-8")
        failed = self.root / "failed"
        if done and status and not failed.exists():
            raise SystemExit(f"pytest could not run the tests:\n{(self.root / 'output').read_text()[-3000:]}")
        return failed.read_text(encoding="utf-8") if failed.exists() else "" if done else "the time limit"


def run(roots: Sequence[Path], mutants: Sequence[Mutant]) -> int:
    """Test every mutant, one in each copy at a time, print a table and count the survivors without a reason."""
    waiting, free, running, survivors = list(mutants), list(roots), list[Tests](), 0
    while waiting or running:
        while waiting and free:
            running.append(Tests(free.pop(), waiting[0].tests, waiting.pop(0)))
        time.sleep(0.1)
        for tests in list(running):
            if (killer := tests.result(SECONDS)) is not None and (mutant := tests.mutant):
                running.remove(tests)
                free.append(tests.root)
                survivors += not killer and not mutant.reason
                print(f"{mutant.name:41} {mutant.kind:20} {time.monotonic() - tests.began:4.0f} s",
                      killer or f"SURVIVED {mutant.reason}", flush=True)
    return survivors


def copy_checkout(target: Path) -> Path:
    """Copy the checkout's files without what git ignores, and return the folder."""
    listed = subprocess.run(["git", "ls-files", "-zco", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True,
                            check=True).stdout.split("\0")
    for name in filter(lambda name: (ROOT / name).is_file(), listed):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target / name)
    return target


def main() -> int | str:
    """Run the command; the exit code is 1 if a mutant without a reason survives."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description="Test the tests with broken sources.")
    parser.add_argument("--only", metavar="NAME", action="append", help="test this mutant; may be repeated")
    parser.add_argument("--jobs", type=int, default=1, help="mutants tested at the same time, default 1")
    parser.add_argument("--list", action="store_true", help="print the mutants and test nothing")
    options = parser.parse_args()
    mutants = [mutant for mutant in load() if not options.only or mutant.name in options.only]
    if unknown := {*(options.only or [])} - {mutant.name for mutant in mutants}:
        return f"--only must name a mutant of `--list`; got {', '.join(sorted(unknown))}."
    if options.list:
        print(*(f"{mutant.name:41} {mutant.kind:20} {mutant.file}" for mutant in mutants), sep="\n")
        return 0
    sys.dont_write_bytecode = True  # a file that changes twice within a second would keep its old bytecode
    os.environ |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "PYTHONDONTWRITEBYTECODE": "1"}
    for module in PRELOADED:
        importlib.import_module(module)
    with tempfile.TemporaryDirectory() as folder:
        roots = [copy_checkout(Path(folder) / str(number)) for number in range(max(1, options.jobs))]
        whole = Tests(roots[0], sorted({test for mutant in mutants for test in mutant.tests}))
        while (failed := whole.result(ALL_SECONDS)) is None:
            time.sleep(0.1)
        if failed:
            return f"{(roots[0] / 'output').read_text()[-3000:]}\nWithout a mutant, {failed} fails. Repair it first."
        print(f"{'without a mutant':62} {time.monotonic() - whole.began:4.0f} s all tests pass", flush=True)
        survivors = run(roots, mutants)
    print(f"{len(mutants)} mutants, {survivors} survive without a reason.")
    return int(survivors > 0)


if __name__ == "__main__":
    sys.exit(main())
