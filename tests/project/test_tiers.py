"""`make test` covers every page, every method and kills without the tests marked `slow`."""

from __future__ import annotations

import inspect
import re
import shlex
import subprocess
import sys
from functools import cache
from importlib import import_module
from types import FunctionType

import pytest

from pages.parts.shell.views import VIEWS
from tests.conftest import part_of
from tests.project.documents import ROOT
from tests.tiers import slow_tests, slowest
from udml_core.methods import METHODS

PAGES = {"home", "data", "learn", *VIEWS}
"""The views, and the pages without views."""
FOLDERS = ("tests/app", "tests/contract/test_methods.py", "tests/contract/test_odd_folders.py",
           "tests/work/test_survival.py")
"""Where the tests are that cover pages, methods and kills."""
OPENED = re.compile(r'opened\((?:"(\w+)"|page\b)')
BROWSED = re.compile(r'goto\(f?"/(?:\w+\?tool=)?(?:(\w*)|\{name\})[?"&]')
"""How a test opens a page, whose name is in the text or is the test's first parameter."""


def options_of(target: str) -> tuple[str, ...]:
    """Return the options that a target of the Makefile gives to pytest."""
    found = re.search(rf"^{target}: dev\n\t\$\(PYTEST\)(.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    assert found, target
    return tuple(shlex.split(found[1]))


@pytest.fixture(scope="module")
def tests() -> list[str]:
    """The tests of `make test` in some folders: FILE::NAME[PARAMETERS]."""
    return collected(*options_of("test"), *FOLDERS)


def collected(*words: str) -> list[str]:
    """Return the tests that pytest finds: FILE::NAME[PARAMETERS]."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-p", "no:xdist", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    # `-q` in the project's options prints one test a line.
    return [line for line in done.stdout.splitlines() if "::" in line]


@cache
def text_of(function: FunctionType) -> str:
    """Return the source of a test and of the functions of the tests that it calls."""
    called = [function.__globals__.get(name) for name in function.__code__.co_names]
    helpers = [each for each in called if isinstance(each, FunctionType) and each is not function
               and each.__module__ == function.__module__]
    return "\n".join([inspect.getsource(function), *map(text_of, helpers)])


def pages_of(test: str, pattern: re.Pattern[str]) -> set[str]:
    """Return the pages that a test opens."""
    file, name, parameters = re.fullmatch(r"([^:]+)\.py::(\w+)(?:\[(.*)\])?", test, re.DOTALL).groups()  # type: ignore[union-attr]
    text = text_of(getattr(import_module(file.replace("/", ".")), name))
    first = (parameters or "").partition("-")[0]
    return {first if match[1] is None else match[1] or "home" for match in pattern.finditer(text)}


@pytest.mark.slow
@pytest.mark.parametrize("pattern", [OPENED, BROWSED], ids=["AppTest", "browser"])
def test_every_page_is_opened(pattern: re.Pattern[str], tests: list[str]) -> None:
    opened = set[str]().union(*(pages_of(test, pattern) for test in tests if test.startswith("tests/app/")))
    assert sorted(PAGES - opened) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["test_methods.py::test_epochs_are_numbered", "test_odd_folders.py::test_a_run_on"])
def test_every_method_is_trained(name: str, tests: list[str]) -> None:
    trained = "\n".join(test for test in tests if test.startswith(f"tests/contract/{name}"))
    assert [method.card.name for method in METHODS if not re.search(rf"\[{method.card.name}\b", trained)] == []


@pytest.mark.slow
def test_a_run_is_killed(tests: list[str]) -> None:
    assert any("::test_a_run_killed_" in test for test in tests)


@pytest.mark.slow
def test_each_listed_test_exists() -> None:
    assert sorted(slow_tests() - set(collected("-m", "slow"))) == []


def test_the_slowest_tests_leave_except_browsers_methods_and_kills() -> None:
    times = {"tests/a.py::b": 40.0, "tests/a.py::c": 30.0, "tests/app/test_browser.py::d": 20.0, "tests/a.py::e": 10.0}
    assert slowest(times, 0.6) == ["tests/a.py::b"]
    assert slowest(times, 0.3) == ["tests/a.py::b", "tests/a.py::c"]
    assert slowest(times, 0.1) == ["tests/a.py::b", "tests/a.py::c", "tests/a.py::e"], "the browser stays"


def test_ci_runs_both_tiers() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    targets = re.findall(r"^make (test[\w-]*)\b", script, re.MULTILINE)
    assert sorted(map(options_of, targets)) == [("-m", "not slow"), ("-m", "slow")]
    assert options_of("test-all") == ()


def test_each_test_belongs_to_one_of_twelve_parts_of_similar_size() -> None:
    """CI runs the slow tests of one part."""
    names = [f"tests/test_{number}.py::test[{number}]" for number in range(600)]
    sizes = [sum(part_of(name, 12) == part for name in names) for part in range(1, 13)]
    assert sum(sizes) == 600
    assert min(sizes) > 25
