"""Search in refined embeddings: stored rankings, queries from outside, filters and views."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.running import worked
from udml_core.base.errors import UserError
from udml_core.data.splits import make_split
from udml_core.methods import Embedder
from udml_core.numerics.graph import AuthorityGraph
from udml_core.numerics.refinement import Recipe, Refiner, make_step
from udml_core.numerics.refinement.recipe import Views
from udml_core.runs import Run
from udml_core.runs.analyses import Refined, plan_analysis
from udml_core.runs.analyses.kinds.refine import Refinement
from udml_core.runs.search import (
    Hit,
    Query,
    Retrieval,
    are_views_stored,
    finished_refinements,
    outside_recipe,
    view_embeddings,
)
from udml_core.runs.search.refined import RefinedIndex
from udml_core.work.workers.analyse import keep


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return worked(tmp_path_factory.mktemp("runs"))


@dataclass
class Opened:
    """A refinement, opened for search."""

    retrieval: Retrieval
    name: str

    @property
    def index(self) -> RefinedIndex:
        index = self.retrieval.frame(self.name).index
        assert isinstance(index, RefinedIndex)
        return index

    @property
    def result(self) -> Refined:
        return self.index.result

    def embed(self, image: Image.Image) -> np.ndarray:
        return self.retrieval.embed(image, self.name)

    def search(self, query: Query, k: int, allowed: np.ndarray | None = None) -> list[Hit]:
        return self.retrieval.search(query, k, self.name, allowed=allowed)


def refined(run: Run, recipe: str, scope: str = "test", frame: str = "final") -> Opened:
    analysis = keep(run, plan_analysis(kind="refine", recipe=recipe, scope=scope, frames=(frame,)), silent)
    return Opened(Retrieval(run), analysis.id)


def silent(_share: float, _step: str) -> None:
    pass


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("recipe", ["whiten+average:k=5", "rerank:k1=12"])
def test_a_test_image_has_the_ranking_of_the_analysis(recipe: str, run: Run) -> None:
    opened = refined(run, recipe)
    test, labels = opened.result.indices, np.asarray(opened.retrieval.dataset.labels)
    split = opened.retrieval.split
    embeddings = np.asarray(run.embeddings("final"))
    exact = Refiner(recipe).fit(embeddings[split.test], training=embeddings[split.train]).neighbors(20)
    hits = opened.search(Query((int(test[11]),)), 20)
    assert [hit.index for hit in hits] == test[exact.indices[11]].tolist()
    np.testing.assert_allclose([hit.similarity for hit in hits], exact.scores[11], atol=1e-6)
    assert [hit.rank for hit in hits] == list(range(1, 21))
    assert [hit.correct for hit in hits] == (labels[[hit.index for hit in hits]] == labels[test[11]]).tolist()


@pytest.mark.parametrize("recipe", ["whiten:k=4", "average:k=5,alpha=2+expand:k=3", "average:k=5,alpha=2",
                                    "rerank:k1=12", "diffuse:k=9"])
def test_a_test_image_has_all_hits_that_are_asked_for(recipe: str, run: Run) -> None:
    opened = refined(run, recipe)
    split, rows = opened.retrieval.split, np.asarray(run.embeddings("final"))
    exact = Refiner(recipe).fit(rows[split.test], training=rows[split.train]).neighbors(len(split.test) - 1)
    query, last = Query((int(split.test[11]),)), split.test[exact.indices[11, -20:]]
    hits = opened.search(query, 250)
    assert [hit.index for hit in hits] == split.test[exact.indices[11, :250]].tolist()
    np.testing.assert_allclose([hit.similarity for hit in hits], exact.scores[11, :250], atol=1e-5)
    allowed = np.isin(np.arange(len(rows)), last)
    assert [hit.index for hit in opened.search(query, 5, allowed)] == last[:5].tolist()


@pytest.mark.parametrize("recipe", ["", "expand:k=3", "rerank:k1=12", "diffuse:k=9,shortlist=30"])
def test_some_images_rank_the_gallery_as_all_do(recipe: str) -> None:
    refiner = Refiner(recipe).fit(np.random.default_rng(0).normal(size=(60, 8)))
    chosen = np.array([40, 3])
    for k in (5, 59):
        every, some = refiner.neighbors(k), refiner.neighbors(k, chosen)
        np.testing.assert_array_equal(some.indices, every.indices[chosen])
        np.testing.assert_allclose(some.scores, every.scores[chosen], atol=1e-6)


def test_a_query_from_outside_is_expanded_and_changes_nothing_in_the_gallery(run: Run) -> None:
    opened = refined(run, "average:k=4")
    rows = unit(np.asarray(run.embeddings("final"))[opened.result.indices])
    nearest = np.argsort(-(rows @ rows.T), axis=1)[:, :5]
    gallery = unit(rows[nearest].sum(axis=1))
    outside = unit(np.random.default_rng(0).normal(size=(1, rows.shape[1])) + 3 * rows[[5]])[0].astype(np.float32)
    order = np.argsort(-(gallery @ outside))[:4]
    cosines = gallery @ unit((outside + gallery[order].sum(axis=0))[None])[0]
    hits = opened.search(Query((outside,)), 8)
    np.testing.assert_allclose([hit.similarity for hit in hits], np.sort(cosines)[::-1][:8], atol=1e-5)
    assert {hit.correct for hit in hits} == {None}


def test_images_of_a_query_are_not_hits_and_filters_apply(run: Run) -> None:
    opened = refined(run, "average:k=4")
    first, second = (int(index) for index in opened.result.indices[[3, 4]])
    allowed = np.arange(len(opened.retrieval.dataset)) % 2 == 0
    for query in (Query((first, second)), Query((first,), (second,)), Query((first,))):
        hits = [hit.index for hit in opened.search(query, 15, allowed)]
        assert len(hits) == 15
        assert not set(hits) & set(query.indices)
        assert all(index % 2 == 0 for index in hits)
        assert set(hits) <= set(opened.result.indices.tolist())


def test_a_refinement_is_opened_like_a_stored_embedding_and_says_that_it_covers_the_test_half(run: Run) -> None:
    opened = refined(run, "average:k=4")
    analysis = finished_refinements(run)[0]
    search = Retrieval(run)
    query = Query((int(opened.result.indices[3]),))
    assert search.search(query, 7, analysis.id) == opened.search(query, 7)
    count, covered = len(opened.retrieval.dataset), len(opened.result.indices)
    for gallery in ("all", "test"):
        assert search.describe_searched(analysis.id, gallery) == (  # type: ignore[arg-type]
            f"{covered:,} of {count:,} images searched (test half, which the refinement covers)")


def test_a_training_image_is_a_query_from_outside(run: Run) -> None:
    opened = refined(run, "average:k=4")
    index = int(opened.retrieval.split.train[9])
    vector = unit(np.asarray(run.embeddings("final"))[[index]])[0]
    assert [hit.index for hit in opened.search(Query((index,)), 9)] == [
        hit.index for hit in opened.search(Query((vector,)), 9)]


@pytest.mark.parametrize(("frame", "scope", "recipe"), [
    *(pytest.param(frame, scope, "whiten:k=4+average:k=4", marks=() if scope == "test" else pytest.mark.slow)
      for frame in ("frozen", "initial", "final") for scope in ("test", "train", "all")),
    ("1", "sample", "whiten:k=4+average:k=4"), ("frozen", "all", "views:zoom=1+whiten:k=4"),
    ("initial", "test", "views:zoom=1+whiten:k=4")])
def test_queries_are_refined_in_the_frame_and_scope_of_the_analysis(frame: str, scope: str, recipe: str,
                                                                    run: Run) -> None:
    opened = refined(run, recipe, scope, frame)
    np.testing.assert_allclose(opened.index._refiner.embedding_, opened.result.embedding, atol=1e-5)
    if frame != "1":
        index = int(opened.result.indices[7])
        own = opened.embed(opened.retrieval.dataset.images[index])
        np.testing.assert_allclose(own, opened.index._take(np.array([index]))[0], atol=1e-5)


def test_a_refinement_of_an_epoch_or_a_refinement_has_only_queries_of_its_own_images(run: Run) -> None:
    opened = refined(run, "average:k=4", "sample", "1")
    first, second = (int(index) for index in opened.result.indices[[3, 9]])
    hits = opened.search(Query((first, second)), 5)
    assert len(hits) == 5
    assert {hit.index for hit in hits} <= set(opened.result.indices.tolist())
    outside = int(opened.retrieval.split.train[0])
    with pytest.raises(UserError, match=f"Image {outside} has no embedding in the frame 1"):
        opened.search(Query((outside,)), 5)
    source = keep(run, plan_analysis(kind="refine", recipe="whiten", scope="train"), silent)
    again = refined(run, "average:k=4", "train", source.id)
    np.testing.assert_allclose(again.index._refiner.embedding_, again.result.embedding, atol=1e-5)
    with pytest.raises(UserError, match="refinement of a refinement"):
        again.embed(again.retrieval.dataset.images[0])


def test_a_refinement_of_all_images_searches_the_half_that_it_says(run: Run) -> None:
    refined(run, "average:k=4", "all")
    analysis = plan_analysis(kind="refine", recipe="average:k=4", scope="all").id
    search = Retrieval(run)
    test, train = search.split.test, search.split.train
    query = Query((int(test[0]), int(train[0])))
    indices = {gallery: {hit.index for hit in search.search(query, 2000, analysis, gallery)}  # type: ignore[arg-type]
               for gallery in ("all", "test")}
    assert len(indices["all"]) == len(search.dataset) - 2
    assert indices["test"] == set(test[1:].tolist())
    assert search.describe_searched(analysis, "test").startswith(f"{len(test):,} of")
    part = search.describe_searched(refined(run, "whiten", "train").name)
    assert part.endswith("(training half, which the refinement covers)")


def test_the_recipe_for_outside_expands_by_the_last_averaging() -> None:
    def outside(text: str) -> str:
        return str(outside_recipe(Recipe.parse(text)))

    assert outside("views+average:k=7,times=2,alpha=1") == "average:k=7,times=2,alpha=1+expand:k=7,alpha=1"
    for unchanged in ("whiten", "average+expand:k=3", "average+rerank", "average:k=0"):
        assert outside(unchanged) == unchanged


def test_views_average_the_features_of_stored_views(run: Run) -> None:
    step = make_step("views", {"zoom": 0.6})
    assert isinstance(step, Views)
    assert not are_views_stored(run, make_step("views", {"zoom": 0.9}))  # type: ignore[arg-type]
    opened = refined(run, "views:zoom=0.6+average:k=4")
    assert are_views_stored(run, step)
    index = int(opened.result.indices[2])
    own = opened.embed(opened.retrieval.dataset.images[index])
    rows = view_embeddings(Embedder.load(run.embedder_path), run.dataset(), step)
    np.testing.assert_allclose(own, unit(rows[[index]])[0], atol=1e-5)
    assert index in [hit.index for hit in opened.search(Query((own,)), 5)]


@pytest.mark.parametrize("recipe", ["average:k=4", "views:zoom=0.6+average:k=4"])
def test_images_from_outside_and_of_the_data_set_count_equally_in_a_mean(recipe: str, run: Run) -> None:
    assert not run.is_normalized("final")
    opened = refined(run, recipe)
    first, second = (int(index) for index in opened.result.indices[[2, 40]])
    own = opened.embed(opened.retrieval.dataset.images[second])
    assert np.linalg.norm(own) == pytest.approx(1, abs=1e-5)
    outside, inside = opened.search(Query((first, own)), 12), opened.search(Query((first, second)), 10)
    assert [hit.index for hit in outside if hit.index != second][:10] == [hit.index for hit in inside]


def test_only_finished_refinements_of_the_test_half_are_listed(run: Run) -> None:
    wanted = {keep(run, plan_analysis(kind="refine", recipe=recipe), lambda _share, _step: None).id
              for recipe in ("whiten", "rerank:k1=12")}
    keep(run, plan_analysis(kind="refine", recipe="whiten", scope="train"), lambda _share, _step: None)
    listed = {analysis.id for analysis in finished_refinements(run)}
    assert wanted <= listed
    assert all(analysis.spec().scope == "test" for analysis in finished_refinements(run))


def test_a_map_and_its_grid_can_show_a_refined_embedding(run: Run) -> None:
    analysis = keep(run, plan_analysis(kind="refine", recipe="average:k=4"), lambda _share, _step: None)
    spec = plan_analysis(kind="pca", scope="test", frames=("final", analysis.id))
    projection = keep(run, spec, lambda _share, _step: None).projection()
    result = analysis.result_of(Refinement)
    np.testing.assert_array_equal(projection.indices, result.indices)
    cosines = result.embedding @ result.embedding.T
    np.fill_diagonal(cosines, -2)
    nearest = np.take_along_axis(cosines, projection.neighbors[1].astype(np.int64), axis=1)
    np.testing.assert_allclose(nearest, np.sort(cosines, axis=1)[:, ::-1][:, :10], atol=1e-5)
    grid = keep(run, plan_analysis(kind="grid", source=spec.id, frame=analysis.id), lambda _share, _step: None)
    np.testing.assert_array_equal(np.sort(grid.indices()), result.indices)
    with pytest.raises(UserError, match=f"'test' or 'train', got {analysis.id} with the scope 'all'"):
        plan_analysis(kind="pca", frames=(analysis.id,))


def test_a_graph_can_show_the_refined_training_half(run: Run) -> None:
    refinement = keep(run, plan_analysis(kind="refine", recipe="whiten+average:k=4", scope="train"), silent)
    train = make_split(run.dataset(), "seen").train
    rows = Refiner("whiten+average:k=4").fit(np.asarray(run.embeddings("final"))[train]).embedding_
    graph = keep(run, plan_analysis(kind="graph", scope="train", frames=(refinement.id,), n_neighbors=9), silent)
    np.testing.assert_array_equal(graph.indices(), train)
    result, expected = graph.result(), AuthorityGraph.build(rows, 9)
    assert isinstance(result, AuthorityGraph)
    np.testing.assert_array_equal(result.columns, expected.columns)
    np.testing.assert_allclose(result.affinity, expected.affinity, atol=1e-6)
    assert refinement.id not in {analysis.id for analysis in finished_refinements(run)}
    assert refinement.id in {analysis.id for analysis in finished_refinements(run, "train")}


def test_a_refinement_of_one_half_has_no_embedding_of_the_other(run: Run) -> None:
    refinement = keep(run, plan_analysis(kind="refine", recipe="average:k=4"), silent)
    with pytest.raises(UserError, match=f"{refinement.id} does not have the embedding of all"):
        keep(run, plan_analysis(kind="graph", scope="train", frames=(refinement.id,), n_neighbors=9), silent)


def test_without_stored_views_only_test_images_can_be_queries(run: Run, tmp_path: Path,
                                                             monkeypatch: pytest.MonkeyPatch) -> None:
    opened = refined(run, "views:zoom=0.6+average:k=4")
    monkeypatch.setenv("UDML_CACHE", str(tmp_path))
    assert len(opened.search(Query((int(opened.result.indices[0]),)), 5)) == 5
    with pytest.raises(UserError, match="features of the views are not stored"):
        opened.search(Query((int(opened.retrieval.split.train[0]),)), 5)
