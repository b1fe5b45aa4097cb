"""The live second opinion: equal to the opinion of the judge's own functions, on what a recipe ranks."""

from __future__ import annotations

import numpy as np
import pytest

from udml_core.base.arrays import Array
from udml_core.exploration.refining import LiveGallery, LiveJudge, RefinedGallery, judge_recipe
from udml_core.numerics.refinement import Recipe
from udml_core.numerics.second_opinion import Judge, judge_rankings, second_opinion

RECIPES = ["whiten", "average:k=7", "whiten+average:k=5,times=2,alpha=3", "whiten+rerank:k1=12,k2=4", "diffuse:k=9"]


@pytest.fixture(scope="module")
def views() -> tuple[Array, Array]:
    """Two encoders' features of 120 points of ten overlapping Gaussians: of a gallery, and of a judge."""
    generator = np.random.default_rng(5)
    centers = np.repeat(generator.normal(size=(10, 16)), 12, axis=0)
    encoders = [centers @ generator.normal(size=(16, 16)) + 3.5 * generator.normal(size=(120, 16)) for _ in range(2)]
    return encoders[0].astype(np.float32), encoders[1].astype(np.float32)


@pytest.fixture(scope="module")
def gallery(views: tuple[Array, Array]) -> LiveGallery:
    return LiveGallery(views[0], candidates=119, sample=40)


@pytest.fixture(scope="module")
def judge(views: tuple[Array, Array]) -> Judge:
    return Judge.of(views[1])


def refined(gallery: LiveGallery, recipe: str) -> RefinedGallery:
    return gallery.refine(Recipe.parse(recipe))


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_live_opinion_is_the_judges_on_the_rankings(recipe: str, gallery: LiveGallery, judge: Judge) -> None:
    queries, after = gallery.before.queries, refined(gallery, recipe).rank_sample(judge.group)
    expected = judge_rankings(judge, queries, gallery.before.ranking[:, : judge.group], after)
    live = judge_recipe({"other": LiveJudge.of(judge, queries)}, refined(gallery, recipe))
    assert live is not None
    assert (live.group, live.wanted) == (judge.group, judge.group)
    for question in ("first_results", "groups"):
        found, wanted = getattr(live.opinions["other"], question), getattr(expected, question)
        assert (found.before, found.after, found.error) == pytest.approx(
            (wanted.before, wanted.after, wanted.error), abs=1e-6)
        assert found.error > 0


def test_with_all_queries_it_is_the_second_opinion_on_the_refined_embedding(views: tuple[Array, Array], judge: Judge
                                                                            ) -> None:
    gallery = LiveGallery(views[0], candidates=119, sample=120)
    after = refined(gallery, "average:k=7")
    expected = second_opinion(judge, views[0], after.stage.rows)
    live = judge_recipe({"other": LiveJudge.of(judge, gallery.before.queries)}, after)
    assert live is not None
    assert live.opinions["other"].groups.difference == pytest.approx(expected.groups.difference, rel=0.01), "ties"
    assert live.opinions["other"].groups.verdict == expected.groups.verdict == "better"


def test_nothing_can_be_told_of_a_recipe_that_changes_nothing(gallery: LiveGallery, judge: Judge) -> None:
    unit = LiveGallery(gallery.start.rows, candidates=119, sample=40)
    live = judge_recipe({"other": LiveJudge.of(judge, unit.before.queries)}, refined(unit, "average:k=0"))
    assert live is not None
    assert live.opinions["other"].groups.difference == pytest.approx(0, abs=1e-9)
    assert live.opinions["other"].groups.verdict == "cannot tell"


def test_only_results_that_every_query_has_are_judged(gallery: LiveGallery, judge: Judge) -> None:
    queries = gallery.before.queries
    short = refined(gallery, "average:k=7")
    ranking = short.rank_sample(judge.group).copy()
    ranking[3, 4:] = -1
    short._sampled = ranking
    live = judge_recipe({"other": LiveJudge.of(judge, queries)}, short)
    assert live is not None
    assert (live.group, live.wanted) == (4, judge.group)
    expected = judge_rankings(judge, queries, gallery.before.ranking[:, :4], ranking[:, :4])
    assert live.opinions["other"].groups.difference == pytest.approx(expected.groups.difference, abs=1e-6)
    ranking[3] = -1
    assert judge_recipe({"other": LiveJudge.of(judge, queries)}, short) is None
