"""The example runs: valid, small, as measured, read-only, hidden on request, and repeatable."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from experiments.make_examples import EXAMPLES_TO_MAKE, LARGEST, size_of
from tests.running import repeat_request, worked
from udml_core.base.errors import UserError
from udml_core.base.paths import EXAMPLES
from udml_core.cli import commands as cli
from udml_core.data import catalog
from udml_core.data.splits import make_split
from udml_core.numerics.evaluation import map_at_r, recall_at_k
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.refinement import Refiner
from udml_core.numerics.refinement.ranking_measures import retrieval_measures
from udml_core.runs import (
    Run,
    create_run,
    example_runs,
    find_run,
    hide_examples,
    list_runs,
    own_copy,
    show_examples,
)
from udml_core.runs.analyses import Analysis, find_analysis, list_analyses, plan_analysis
from udml_core.runs.analyses.kinds.opinion import JUDGES
from udml_core.runs.baselines import write_baselines
from udml_core.runs.examples import POINTS, SHOWCASE, point_of
from udml_core.runs.notes import Notes
from udml_core.runs.opinions import opinion_of
from udml_core.runs.recipe_choice import recipe_choice
from udml_core.runs.tasks import LIVE_STATES, Status
from udml_core.runs.trash import delete_run
from udml_core.runs.verdict import MEASURED, standing
from udml_core.work import jobs
from udml_core.work.jobs.follow_ups import want
from udml_core.work.workers import analyse as analysis_worker
from udml_core.work.workers import train as training_worker

RUNS = [Run(EXAMPLES / run_id) for run_id in EXAMPLES_TO_MAKE]
RPML = RUNS[0]
EVERY_KIND = {"pca", "graph", "tsne", "umap", "grid", "refine", "opinion"}


@pytest.fixture(autouse=True)
def _with_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UDML_EXAMPLES")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
def _no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("udml_core.work.jobs.launch.launch", lambda *_: None)


def content_of(folder: Path) -> str:
    """Return a digest of all names and contents below a folder."""
    parts = sorted((str(path.relative_to(folder)), path.read_bytes()) for path in folder.rglob("*") if path.is_file())
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def call(*words: str) -> Any:
    return CliRunner().invoke(cli.app, list(words))


# As shipped


def test_the_examples_are_those_of_the_command_and_small() -> None:
    assert {path.name for path in EXAMPLES.iterdir() if path.is_dir()} == set(EXAMPLES_TO_MAKE)
    assert size_of(EXAMPLES) <= LARGEST


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.id)
def test_an_example_is_a_complete_run_of_an_available_data_set(run: Run) -> None:
    spec, method = run.spec(), run.spec().build_method()
    assert run.status().state == "done"
    assert run.broken_result() is None
    run.check_dataset(catalog.load(spec.dataset))
    assert spec.fields == method.model_dump()
    assert run.epoch_numbers() == list(range(len(run.epoch_numbers())))
    assert [row["epoch"] for row in run.metrics()[0]] == run.epoch_numbers()
    assert all(np.isfinite(run.embeddings(which)).all() for which in ("initial", "final"))
    assert {analysis.spec().kind for analysis in list_analyses(run)} == EVERY_KIND
    assert {str(number) for number in run.epoch_numbers()} in [set(analysis.spec().frames) for analysis in
                                                              list_analyses(run) if analysis.spec().kind == "umap"]
    for analysis in list_analyses(run):
        assert analysis.is_done()
        assert analysis.spec().kind == "opinion" or len(analysis.indices())
        analysis.result()


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.id)
def test_the_evaluation_of_an_example_is_that_of_its_embeddings(run: Run) -> None:
    dataset, evaluation = run.dataset(), run.evaluation()
    assert evaluation is not None
    test = make_split(dataset, run.spec().split).test
    labels = np.asarray(dataset.labels)[test]
    for which in ("initial", "final"):
        embeddings = np.asarray(run.embeddings(which))[test]
        assert 100 * recall_at_k(embeddings, labels, (1,))[1] == pytest.approx(evaluation[which]["recall@1"], abs=0.2)
        assert 100 * map_at_r(embeddings, labels)[0] == pytest.approx(evaluation[which]["map@r"], abs=0.2)


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.id)
def test_an_example_has_no_path_of_the_machine_that_made_it(run: Run) -> None:
    texts = [path.read_text(encoding="utf-8") for path in run.folder.rglob("*.json*")]
    assert not [text for text in texts if "/work" in text or "/tmp" in text or "/home" in text]
    assert not [*run.folder.rglob("lock"), *run.folder.rglob("log.txt")]


def test_every_data_set_of_an_example_that_ships_has_a_license() -> None:
    for name in {run.spec().dataset for run in RUNS} - {"digits"}:  # scikit-learn brings the digits
        assert (EXAMPLES.parent / f"{name}.LICENSE").stat().st_size > 1000


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.id)
def test_the_recipe_that_refine_opens_with_does_not_lower_both_measures(run: Run) -> None:
    choice = recipe_choice(run)
    assert choice.opinions is not None, "judged in advance, so that the page opens at once"
    assert opinion_of(run) is not None
    assert set(choice.opinions.judges) == set(JUDGES) - {run.spec().backbone}
    split, labels = make_split(run.dataset(), run.spec().split), np.asarray(run.dataset().labels)
    rows, depth = np.asarray(run.embeddings("final")), int(np.bincount(labels[split.test]).max())
    refiner = Refiner(choice.recipe).fit(rows[split.test], training=rows[split.train])
    before, after = (retrieval_measures(ranking, labels[split.test], labels[split.test], True) for ranking in
                     (nearest(rows[split.test], depth)[1], refiner.neighbors(depth).indices))
    if choice.recipe:
        assert after["map@r"] > before["map@r"]
        assert after["recall@1"] > before["recall@1"] - 2.5, "the recipe of the earlier default lost 5.8"


# What they show


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.id)
def test_an_example_says_in_one_line_what_it_shows_with_the_figures_of_its_evaluation(run: Run) -> None:
    point, evaluation = point_of(run), run.evaluation()
    assert evaluation is not None
    assert "–" not in point, "every figure is in the evaluation"
    assert "{" not in point
    assert len(point) <= 160
    assert set(POINTS) == {run.id for run in RUNS}
    figures = set(re.findall(r"\d+\.\d(?=\s%)", point))
    assert f"{evaluation['final']['recall@1']:.1f}" in figures
    assert figures <= {f"{row[measure]:.1f}" for row in evaluation.values() for measure in ("recall@1", "map@r")}


def test_the_showcase_wins_whole_groups_without_labels_and_loses_no_first_results_as_its_judges_see_too() -> None:
    showcase = Run(EXAMPLES / SHOWCASE)
    assert showcase.spec().build_method().card.supervision == "none"
    evaluation, opinions = showcase.evaluation() or {}, opinion_of(showcase)
    sides = {measure: standing(evaluation, measure).side(evaluation["final"]["images"]) for measure in MEASURED}
    assert sides == {"recall@1": 0, "map@r": 1}
    assert opinions is not None
    assert opinions.verdicts("final") == ("cannot tell", "better")
    assert evaluation["final"]["map@r"] > 1.5 * evaluation["initial"]["map@r"], "the map must move"


def test_other_runs_show_no_point(root: Path) -> None:
    assert point_of(worked(root)) == ""
    assert point_of(own_copy(RPML, root)) == point_of(RPML)


# Listing, finding, hiding


def test_the_users_runs_are_listed_before_the_examples(root: Path) -> None:
    own = worked(root)
    assert list_runs(root) == [own, *example_runs()]
    assert [run.is_example for run in list_runs(root)] == [False, *[True] * len(RUNS)]


def test_the_environment_switches_examples_off(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_EXAMPLES", "0")
    assert list_runs(root) == example_runs() == []
    with pytest.raises(UserError, match="No run"):
        find_run(RPML.id, root)


def test_hidden_examples_leave_the_list_and_are_still_found(root: Path) -> None:
    hide_examples(root)
    assert list_runs(root) == []
    assert find_run(RPML.id, root) == RPML
    show_examples(root)
    assert list_runs(root) == example_runs()
    show_examples(root)


def test_examples_are_found_by_the_beginning_of_their_id(root: Path) -> None:
    assert find_run(RPML.id[:-2], root) == RPML
    create_run(RPML.spec(), root)
    with pytest.raises(UserError, match="beginning of"):
        find_run("2026", root)


def test_the_command_line_lists_hides_and_shows_examples(root: Path) -> None:
    assert f"{RPML.id}  done" in call("runs", "--runs", str(root)).stdout
    assert "(example)" in call("runs", "--runs", str(root)).stdout
    assert json.loads(call("runs", "--runs", str(root), "--json").stdout)["runs"][0]["example"] is True
    assert RPML.id in call("examples", "--hide", "--runs", str(root)).stdout
    assert RPML.id not in call("runs", "--runs", str(root)).stdout
    call("examples", "--show", "--runs", str(root))
    assert RPML.id in call("runs", "--runs", str(root)).stdout
    assert call("examples", "--show", "--hide", "--runs", str(root)).exception


# Read-only


def test_nothing_is_written_to_an_example() -> None:
    before = content_of(RPML.folder)
    analysis = list_analyses(RPML)[0]
    embedder = object()
    for write in (lambda: RPML.write_status(Status()), RPML.lock, RPML.clear_failure, RPML.request_stop,
                  lambda: RPML.append_metrics({"epoch": 99}), lambda: RPML.write_evaluation({}),
                  lambda: RPML.write_epoch(99, [], np.zeros((2, 2))), lambda: RPML.write_sample_indices(np.zeros(2)),
                  lambda: RPML.write_embeddings("final", np.zeros((2, 2))),
                  lambda: RPML.write_best(1, {}, embedder), lambda: RPML.write_checkpoint(1, {}, embedder),
                  lambda: RPML.write_notes(Notes()), lambda: write_baselines(RPML, {}), lambda: want(RPML, "maps"),
                  analysis.remove, lambda: analysis.write_result({}), lambda: analysis.write_status(Status()),
                  lambda: training_worker.work(RPML), lambda: analysis_worker.work(analysis),
                  lambda: analysis_worker.keep(RPML, plan_analysis(kind="pca", scope="sample"), lambda *_: None)):
        with pytest.raises(UserError, match="belongs to an example, which cannot be changed"):
            write()  # type: ignore[no-untyped-call]
    with pytest.raises(UserError, match="Hide the examples"):
        delete_run(RPML)
    with pytest.raises(UserError, match="nothing to resume"):
        jobs.resume(RPML)
    assert jobs.stop(RPML).state == "done"
    assert content_of(RPML.folder) == before


@pytest.mark.usefixtures("_no_workers")
def test_a_new_analysis_of_an_example_goes_to_the_users_own_copy(root: Path) -> None:
    before = content_of(RPML.folder)
    analysis = jobs.analyse(RPML, plan_analysis(kind="umap", n_neighbors=7), root=root)
    copy = analysis.run
    assert copy.folder == root / RPML.id
    assert not copy.is_example
    assert analysis.status().state in LIVE_STATES
    assert list_runs(root).count(copy) == 1
    assert [run.id for run in list_runs(root)].count(RPML.id) == 1
    assert find_run(RPML.id, root) == copy
    assert copy.spec() == RPML.spec()
    assert jobs.analyse(RPML, plan_analysis(kind="umap", n_neighbors=8), root=root).run == copy
    assert content_of(RPML.folder) == before
    copy.write_evaluation({})  # the copy is the user's


def test_a_finished_analysis_of_an_example_is_returned_without_a_copy(root: Path) -> None:
    analysis = jobs.analyse(RPML, plan_analysis(kind="umap"), root=root)
    assert analysis == Analysis(RPML.folder / "analyses" / plan_analysis(kind="umap").id)
    assert not root.exists()


def test_an_analysis_is_computed_in_the_copy_and_equals_the_examples(root: Path) -> None:
    copy = own_copy(RPML, root)
    spec = plan_analysis(kind="pca")
    find_analysis(copy, spec.id).remove()
    again = analysis_worker.keep(copy, spec, lambda *_: None).projection()
    assert np.allclose(again.positions, find_analysis(RPML, spec.id).projection().positions, atol=1e-4)


def test_a_copy_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="new analyses are stored in a copy"):
        own_copy(RPML, tmp_path / "file" / "runs")


# Training again


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.id)
def test_an_example_can_be_planned_again(run: Run) -> None:
    planned = jobs.plan(repeat_request(run), run.dataset())
    ignored = {"created", "version", "versions", "device"}
    assert planned.model_dump(exclude=ignored) == run.spec().model_dump(exclude=ignored)


@pytest.mark.slow
def test_a_repetition_gives_the_same_figures(root: Path) -> None:
    again = create_run(jobs.plan(repeat_request(RPML), RPML.dataset()), root)
    assert training_worker.work(again, analyse=False).state == "done"
    first, second = RPML.evaluation(), again.evaluation()
    assert first is not None
    assert second is not None
    for measure in ("recall@1", "map@r"):
        assert second["final"][measure] == pytest.approx(first["final"][measure], abs=2)
