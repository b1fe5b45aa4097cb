"""The tasks of the course, checked from real runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.running import worked
from udml_core.base.declaration import describe
from udml_core.base.paths import EXAMPLES
from udml_core.methods import find_method
from udml_core.results.lesson_tasks import TASKS, Result
from udml_core.runs import Run
from udml_core.runs.analyses import plan_analysis
from udml_core.runs.examples import SHOWCASE, own_copy
from udml_core.runs.task_evidence import STARTED_FILE, StoredRun, note_task, own_evidence
from udml_core.work.workers import analyse

Request = dict[str, Any]
READER = "0123456789abcdef"


def started(lesson: str, /, **changed: Any) -> Request:
    """Return the request of a task's run with other hyper-parameters; `options` replace its options."""
    task = TASKS[lesson]
    options = {name: int(value) if value.isdigit() else value for name, value in task.options.items()}
    options |= changed.pop("options", {})
    return {**options, "fields": {**task.fields, **changed}}


def result_of(root: Path, lesson: str, requests: Iterable[Request]) -> Result | None:
    """Train runs in a folder and return what they say about a task."""
    for request in requests:
        tried(root, lesson, request)
    return TASKS[lesson].result(evidence(root, lesson))


def tried(root: Path, lesson: str, request: Request) -> Run:
    """Train a run that the reader started from the task of a lesson."""
    run = worked(root, **request)
    note_task(run, lesson, READER)
    return run


def evidence(root: Path, lesson: str, reader: str = READER) -> list[StoredRun]:
    """Return the runs that a reader started from the task of a lesson."""
    return own_evidence(root, reader).get(lesson, [])


def last(run: Run, curve: str) -> float:
    return float(run.metrics()[0][-1][curve])


SHORT = {"epochs": 3}
CASES: dict[str, tuple[list[Request], list[Request], str]] = {
    # lesson: (runs that do not solve it, further runs that do, words of the answer that is no solution)
    "metric": ([started("metric", dimension=16)], [started("metric", dimension=2)], "above the pixels"),
    "triplets": ([started("triplets", alpha=12.0, mining="violating"), started("triplets")],
                 [started("triplets", alpha=8.0)], "try a smaller α than 45°"),
    "hardness": ([started("hardness"), started("hardness", mining="random")],
                 [started("hardness", alpha=15.0), started("hardness", alpha=15.0, mining="random")], "by another α"),
    "epsilon": ([started("epsilon"), started("epsilon", epsilon=0.9)], [started("epsilon", epsilon=0.7)],
                "try a smaller ε"),
    "flat": ([started("flat", candidates=10, threshold=0.8), started("flat")], [started("flat", threshold=0.65)],
             "try a smaller T than 0.9"),
    "spread": ([started("spread", **SHORT)], [started("spread", gamma=0.5, **SHORT)], "differs only in γ"),
    "instances": ([started("instances")], [started("instances", temperature=0.15)], "try another τ"),
    "collapse": ([started("collapse")], [started("collapse", learning_rate=1.0)], "too few directions are lost"),
    "measures": ([started("measures", **SHORT)],
                 [started("measures", alpha=20.0), {**started("measures"), "method": "frozen", "fields": {}}],
                 "a second run on the same images is missing"),
    "seeds": ([started("seeds", alpha=alpha, options={"seed": seed}, **SHORT)
               for alpha, seed in ((45.0, 0), (45.0, 1), (45.0, 2), (20.0, 0))],
              [started("seeds", alpha=20.0, options={"seed": seed}, **SHORT) for seed in (1, 2)],
              "Settings with 3 seeds: 1"),
    "encoders": ([{**started("encoders"), "backbone": name, "whitening": "none" if "+" in name else "together"}
                  for name in ("pixels", "lenet", "pixels+lenet")],
                 [{**started("encoders"), "backbone": name, "whitening": "none" if "+" in name else "together"}
                  for name in ("squeezenet", "pixels+squeezenet")], "whose errors differ more"),
}


@pytest.mark.parametrize("lesson", CASES)
def test_the_sliders_of_lab_reach_a_solution(lesson: str) -> None:
    for request in CASES[lesson][1]:
        for field in describe(find_method(request["method"])):
            value = request["fields"].get(field.name)
            if isinstance(value, int | float) and not isinstance(value, bool):
                low, high, _step = field.slider
                assert low <= value <= high, (field.name, value)


@pytest.mark.parametrize("lesson", CASES)
def test_a_task_is_solved_by_the_runs_that_do_what_it_says(lesson: str, tmp_path: Path) -> None:
    before, further, words = CASES[lesson]
    assert TASKS[lesson].result(evidence(tmp_path, lesson)) is None
    failed = result_of(tmp_path, lesson, before)
    assert failed is not None
    assert not failed.is_solved
    assert words in failed.words
    solved = result_of(tmp_path, lesson, further)
    assert solved is not None
    assert solved.is_solved, solved.words


def test_the_sentence_has_the_number_that_the_run_recorded(tmp_path: Path) -> None:
    run = tried(tmp_path, "triplets", started("triplets", alpha=8.0))
    result = TASKS["triplets"].result(evidence(tmp_path, "triplets"))
    share = f"{100 * last(run, 'violating'):.0f}\N{NO-BREAK SPACE}%"
    assert result is not None
    assert result.words == f"{share} of the triplets violate their bound in the last epoch at α = 8°: solved."
    assert result.in_language("de") == (
        f"{share} der Triplets verletzen in der letzten Epoche ihre Schranke bei α = 8°: gelöst.")


class Tried:
    """A run that stored one share."""

    def __init__(self, alpha: float, share: float) -> None:
        """Keep its angle and share."""
        self.settings = {**TASKS["triplets"].options, "mining": "random", "alpha": alpha}
        self.rows = [{"violating": share}]

    def epochs(self) -> list[dict[str, float]]:
        """Return its only epoch."""
        return self.rows


def test_two_runs_bound_the_value_that_solves_a_task_and_the_next_try_begins_with_the_newest() -> None:
    task = TASKS["triplets"]
    runs: list[Any] = [Tried(11.0, 0.39), Tried(6.5, 0.7), Tried(45.0, 0.0)]
    result = task.result(runs)
    assert result is not None
    assert result.words.endswith("your runs say that half lies between 6.5° and 11°.")
    assert result.in_language("es").endswith("la mitad está entre 6,5° y 11°.")
    assert "alpha:11" in task.begin(runs).query["fields"]
    assert task.begin([]) == task


def analysed(run: Run, kind: str, **values: Any) -> None:
    analyse.keep(run, plan_analysis(kind, **values), lambda *_: None)


ANALYSES: dict[str, tuple[Request, tuple[Callable[[Run], None], ...], str, Callable[[Run], None]]] = {
    # lesson: run, analyses that do not solve the task, words of the answer then, and the analysis that does
    "maps": (started("maps", **SHORT), (lambda run: analysed(run, "tsne", perplexity=30.0, scope="test"),),
             "try another perplexity", lambda run: analysed(run, "tsne", perplexity=2.0, scope="test")),
    "reranking": (started("reranking"), (lambda run: analysed(run, "refine", recipe="average:k=10"),
                                         lambda run: analysed(run, "refine", recipe="average:k=80+whiten")),
                  "a recipe that loses is missing", lambda run: analysed(run, "refine", recipe="average:k=80")),
}


@pytest.mark.parametrize("lesson", ANALYSES)
def test_a_task_is_solved_by_the_analyses_that_do_what_it_says(lesson: str, tmp_path: Path) -> None:
    request, before, words, further = ANALYSES[lesson]
    run = tried(tmp_path, lesson, request)
    for step in before:
        step(run)
    failed = TASKS[lesson].result(evidence(tmp_path, lesson))
    assert failed is not None
    assert not failed.is_solved
    assert words in failed.words
    further(run)
    solved = TASKS[lesson].result(evidence(tmp_path, lesson))
    assert solved is not None
    assert solved.is_solved, solved.words


def test_the_judges_are_sure_of_one_run_and_not_of_another(tmp_path: Path) -> None:
    for alpha, verdict in ((45.0, "cannot tell"), (20.0, "better")):
        run = tried(tmp_path, "better", started("better", alpha=alpha))
        without = TASKS["better"].result(evidence(tmp_path, "better"))
        assert without is not None
        assert not without.is_solved
        analysed(run, "opinion")
        result = TASKS["better"].result(evidence(tmp_path, "better"))
        assert result is not None
        assert f"“{verdict}”" in result.words
        assert not re.search(r"-\d", result.words)  # a minus sign, not a hyphen
        assert result.is_solved == (verdict == "better")


def test_every_task_has_a_real_run_among_these_tests() -> None:
    assert {*CASES, *ANALYSES, "better"} == set(TASKS)


def test_examples_and_their_copies_solve_nothing(tmp_path: Path) -> None:
    note_task(own_copy(Run(EXAMPLES / SHOWCASE), tmp_path), "triplets", READER)
    assert evidence(tmp_path, "triplets") == []
    run = tried(tmp_path, "triplets", started("triplets"))
    assert [stored.id for stored in evidence(tmp_path, "triplets")] == [run.id]


def test_a_run_counts_for_its_own_task_and_reader_alone(tmp_path: Path) -> None:
    run = worked(tmp_path, **started("triplets", alpha=8.0))  # started elsewhere, but with the values of the task
    assert own_evidence(tmp_path, READER) == {}
    assert own_evidence(tmp_path, "") == {}
    note_task(run, "triplets", READER)
    assert evidence(tmp_path, "hardness") == []
    assert evidence(tmp_path, "triplets", "f" * 16) == []
    result = TASKS["triplets"].result(evidence(tmp_path, "triplets"))
    assert result is not None
    assert result.is_solved
    (run.folder / STARTED_FILE).write_text("{")
    assert own_evidence(tmp_path, READER) == {}
