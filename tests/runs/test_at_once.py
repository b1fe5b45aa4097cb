"""Refinements that are searched at once, and the nearest images that a query shares with its results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.running import spec, worked, write_digits
from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.given.exclusions import exclude
from udml_core.numerics.refinement import Recipe, Refiner
from udml_core.runs import Run, create_run
from udml_core.runs.analyses import plan_analysis
from udml_core.runs.search import Query, Retrieval, shared_neighbors
from udml_core.work.workers import train
from udml_core.work.workers.analyse import keep


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return worked(tmp_path_factory.mktemp("runs"))


@pytest.mark.parametrize("recipe", ["whiten", "whiten+average", "reduce:dimension=4"])
def test_a_recipe_at_once_ranks_as_its_stored_analysis(run: Run, recipe: str) -> None:
    stored = keep(run, plan_analysis(kind="refine", recipe=recipe), lambda _share, _step: None)
    retrieval = Retrieval(run)
    for query in retrieval.split.test[[0, 50, 301]].tolist():
        at_once = retrieval.search_item(query, 10, f"recipe:{recipe}")
        expected = retrieval.search_item(query, 10, stored.id)
        assert [hit.index for hit in at_once] == [hit.index for hit in expected]
        np.testing.assert_allclose([hit.shown for hit in at_once], [hit.shown for hit in expected], atol=1e-5)


def test_steps_are_fitted_on_the_training_half_and_outside_queries_change_nothing(run: Run) -> None:
    retrieval = Retrieval(run)
    split, rows = retrieval.split, run.embeddings("final")
    refiner = Refiner(Recipe.parse("whiten+average+expand")).fit(rows[split.test], training=rows[split.train])
    query = int(split.train[3])
    expected = split.test[refiner.search(rows[[query]], 10).indices[0]]
    assert [hit.index for hit in retrieval.search_item(query, 10, "recipe:whiten+average")] == expected.tolist()
    image = retrieval.dataset.images[query]
    own = Query((retrieval.embed(image, "recipe:whiten+average"),))
    assert [hit.index for hit in retrieval.search(own, 10, "recipe:whiten+average")] == expected.tolist()


def test_only_the_test_half_is_searched_and_the_note_says_what_was_applied(run: Run) -> None:
    retrieval = Retrieval(run)
    frame = retrieval.frame("recipe:whiten")
    assert frame.indices.tolist() == retrieval.split.test.tolist()
    assert frame.note.startswith(f"computed from {len(frame.indices)} test images, without labels: a new image is "
                                 "searched in the same way.")
    assert "refined" in frame.words
    with pytest.raises(UserError, match="has no model"):
        _ = frame.model


def test_without_halves_no_test_half_is_named(tmp_path: Path) -> None:
    dataset = catalog.load(str(write_digits(tmp_path / "digits", by_class=False)))
    exclude(dataset, [0, 1])
    run = create_run(spec("frozen", dataset.name, "all"), tmp_path / "runs")
    assert train.work(run, analyse=False).state == "done"
    stored = keep(run, plan_analysis(kind="refine", recipe="whiten"), lambda _share, _step: None)
    retrieval = Retrieval(run)
    for name in ("recipe:whiten", stored.id):
        assert retrieval.describe_searched(name) == "58 of 60 images searched"


def test_a_large_test_half_is_sampled_evenly(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("udml_core.runs.search.at_once.MOST_IMAGES", 40)
    frame = Retrieval(run).frame("recipe:whiten")
    test = Retrieval(run).split.test
    assert len(frame.indices) == 40
    assert set(frame.indices.tolist()) < set(test.tolist())
    assert frame.part == "sample of the test half"


@pytest.mark.parametrize("name", ["recipe:", "recipe:views", "recipe:views+whiten", "recipe:nonsense"])
def test_recipes_that_need_images_or_are_unknown_are_rejected(run: Run, name: str) -> None:
    with pytest.raises(UserError, match=r"without views|nonsense"):
        Retrieval(run).frame(name)


def test_shared_neighbors_are_near_both_and_ordered_by_their_ranks(run: Run) -> None:
    retrieval = Retrieval(run)
    query, result = 5, retrieval.search_item(5, 1)[0].index
    shared = shared_neighbors(retrieval, Query((query,)), result, 15)
    of_query = {hit.index: hit.rank for hit in retrieval.search_item(query, 15)}
    of_result = {hit.index: hit.rank for hit in retrieval.search_item(result, 15)}
    assert {image.image for image in shared} == set(of_query) & set(of_result)
    assert all((image.of_query, image.of_result) == (of_query[image.image], of_result[image.image]) for image in shared)
    sums = [image.of_query + image.of_result for image in shared]
    assert sums == sorted(sums)
    assert result not in {image.image for image in shared}
    assert shared
