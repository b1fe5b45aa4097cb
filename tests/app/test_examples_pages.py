"""Every example on every page, at once: nothing is computed from images, and no page lacks what it shows."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from pages.parts.shell.cached import load_retrieval
from pages.parts.shell.empty_state import BEST, best_example
from pages.parts.shell.interesting import default_image, interesting_queries, recorded_images, typical_row
from pages.parts.shell.run_status import escaped
from tests.app.opening import ROOT, opened, texts
from udml_core.numerics.explanations import Affinities, Clusters, Explanation, Pairs, Prototypes, Proxies, Triplets
from udml_core.runs import Run, example_runs, hide_examples, list_runs, runs_folder
from udml_core.runs.examples import point_of

PAGES = [*sorted(BEST), "runs", "home"]
EXAMPLES = {path.parent.name: Run(path.parent) for path in sorted((ROOT / "assets" / "examples").glob("*/spec.json"))}
RECORDS: dict[str, tuple[type[Explanation], ...]] = {
    "clusters": (Clusters,), "triplets": (Triplets,), "neighborhoods": (Proxies,), "affinity": (Affinities,),
    "labels": (Affinities,), "pairs": (Pairs, Prototypes)}
"""The records that a page shows of a run."""
MISSING = ("There is no finished run", "no finished run has", "cannot be shown here", "has no map yet",
           "compute a map first")


@pytest.fixture(autouse=True)
def _with_examples_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Show the examples to a user with no run, an empty cache, and no way to compute features or write to them."""
    monkeypatch.delenv("UDML_EXAMPLES")
    monkeypatch.delenv("UDML_DATA", raising=False)
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))

    def refuse(*_arguments: object) -> None:
        raise AssertionError("a page must not compute features to show an example")

    monkeypatch.setattr("udml_core.data.features._compute_blocks", refuse)
    monkeypatch.setattr("udml_core.work.jobs.launch.launch", refuse)


@pytest.mark.parametrize(("run_id", "page"), [
    pytest.param(run_id, page, marks=() if BEST.get(page, BEST["explore"]) == run_id else pytest.mark.slow)
    for run_id in EXAMPLES for page in PAGES])
def test_an_example_opens_in_a_page(run_id: str, page: str) -> None:
    if page == "triplets" and not any(isinstance(record, Triplets) for record in EXAMPLES[run_id].explanations(1)):
        pytest.skip("The page Triplets offers only runs with triplets.")
    test = opened(page, run=run_id)
    assert not test.exception
    assert not test.error, [error.value for error in test.error]
    assert not [words for words in MISSING if words in texts(test)]
    assert not runs_folder().exists(), "opening a page must not copy an example"


@pytest.mark.parametrize(("method", "is_told"), [("rpml", True), ("nml", True), ("distill", True), ("ssdml", False),
                                                 ("isif", False), ("plm", False)])
def test_runs_says_once_what_the_figures_of_an_example_are(method: str, is_told: bool) -> None:
    run = next(run for run in EXAMPLES.values() if run.spec().method == method)
    test = opened("runs", run=run.id)
    assert not test.exception
    assert (escaped(point_of(run)) not in [caption.value for caption in test.caption]) == is_told


def test_explore_opens_with_an_image_that_changes_as_images_do_on_average() -> None:
    run = EXAMPLES[BEST["explore"]]
    evaluation = run.evaluation() or {}
    mean = (evaluation["final"]["mprec@10"] - evaluation["frozen"]["mprec@10"]) / 10
    recorded = set(recorded_images(run).tolist())
    gains = {image: int(badge.split(" → ")[1]) - int(badge.split(" → ")[0])
             for image, badge in interesting_queries(run) if image in recorded}
    assert 0 < mean < 1
    assert gains[default_image(run)] == min(gain for gain in gains.values() if gain > 0), "the smallest gain"
    assert max(gains.values()) > 2, "others change more"


def test_every_best_example_ships_and_has_the_records_of_its_page() -> None:
    for page, run_id in BEST.items():
        run = EXAMPLES[run_id]
        kinds = {type(record) for number in run.epoch_numbers()[:2] for record in run.explanations(number)}
        assert set(RECORDS.get(page, ())) <= kinds, page
    assert set(BEST.values()) == set(EXAMPLES)


def test_the_best_example_is_the_pages_own_if_it_fits() -> None:
    runs = list(EXAMPLES.values())
    for page, run_id in BEST.items():
        assert best_example(page, runs).id == run_id  # type: ignore[union-attr]
    assert best_example("unknown", runs) == runs[0]
    other = best_example("pairs", runs, lambda run: run.id != BEST["pairs"])
    assert other is not None
    assert other.id != BEST["pairs"]
    assert best_example("explore", runs, lambda _run: False) is None
    assert best_example("explore", []) is None


def test_a_page_without_runs_offers_an_example_and_opens_it() -> None:
    hide_examples(runs_folder())
    test = opened("explore")
    assert "Train a run" in texts(test)
    assert BEST["explore"] in opened_example(test)
    assert list_runs(runs_folder()) == example_runs()


@pytest.mark.parametrize("page", ["affinity", "pairs"])
def test_a_run_without_what_the_page_shows_leads_to_the_example_that_has_it(page: str) -> None:
    test = opened(page, run=BEST["explore"])
    assert BEST[page] in opened_example(test)
    assert "did not learn" not in texts(test)
    assert "open-example" not in [button.key for button in test.button]


def test_a_run_without_a_graph_offers_to_compute_it_and_an_example(tmp_path: Path) -> None:
    fresh = shutil.copytree(EXAMPLES[BEST["labels"]].folder, tmp_path / "runs" / "20250101-000000-ssdml-0000aa")
    shutil.rmtree(fresh / "analyses")
    assert BEST["clusters"] in opened_example(opened("clusters", run=fresh.name))


def test_compare_offers_the_examples_if_there_is_nothing_to_compare() -> None:
    hide_examples(runs_folder())
    test = opened("compare")
    assert "needs two finished runs" in texts(test)
    assert opened_example(test)
    assert len(test.multiselect(key="compare-runs").value) == 2
    assert not test.warning, "the two runs search the same images"


def opened_example(test: AppTest) -> str:
    """Press the button that opens an example, and return the run in the address."""
    test.button("open-example").click().run()
    assert not test.exception
    return str(test.query_params["run"])


def test_without_examples_a_page_says_only_how_to_train(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_EXAMPLES", "0")
    test = opened("explore")
    assert "Train a run" in texts(test)
    assert "open-example" not in [button.key for button in test.button]


@pytest.mark.parametrize(("hits", "before", "after", "expected"), [
    (((10, 1), (6, 5), (1, 8)), 6.8, 6.0, 1), (((0, 0), (9, 4), (1, 2)), 1.1, 1.5, 2),
    (((10, 10), (7, 6)), 8.31, 7.83, 1), (((3, 3), (5, 4)), 4.0, 4.4, 0), (((3, 6), (3, 7)), 3.0, 6.4, 0),
    (((9, 6), (9, 5)), 9.0, 5.6, 1), (((9, 8), (8, 8)), 8.4, 8.4, 1)])
def test_the_first_image_changes_visibly_and_no_better_than_on_average(hits: tuple[tuple[int, int], ...], before: float,
                                                           after: float, expected: int) -> None:
    assert typical_row(hits, before, after) == expected, "a gain where training gains on average"


@pytest.mark.parametrize("run", EXAMPLES.values(), ids=EXAMPLES)
def test_no_example_that_gains_opens_with_a_loss(run: Run) -> None:
    evaluation = run.evaluation()
    assert evaluation is not None
    before, after = (evaluation[name]["mprec@10"] for name in (load_retrieval(run).before, "final"))
    strip, recorded = interesting_queries(run), set(recorded_images(run).tolist())
    badges = [badge.split(" → ") for image, badge in strip if not recorded or image in recorded]
    changes = [int(has) - int(had) for had, has in badges]
    assert changes[0] * (after - before) > 0, "a change that is seen, in the direction of the average"
    smallest = min((change for change in changes if change > 0), default=1)
    assert changes[0] <= max(smallest, (after - before) / 10), "no better than the average, or the smallest gain"
