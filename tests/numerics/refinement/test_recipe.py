"""Recipes: reading, writing and error messages."""

from __future__ import annotations

import re

import pytest

from udml_core.base.errors import UserError
from udml_core.numerics.refinement import STEPS, Recipe
from udml_core.numerics.refinement.recipe import Average, Rerank, Views, Whiten, make_step


def test_a_recipe_is_read_in_the_order_of_its_steps() -> None:
    recipe = Recipe.parse("views + whiten:k=7 + average:k=20,times=2,alpha=0.5 + rerank")
    assert recipe.steps == (Views(), Whiten(k=7), Average(k=20, times=2, alpha=0.5), Rerank())


@pytest.mark.parametrize("text", [
    "", "views:zoom=0.85,flip=false+whiten:covariance=images", "average:times=2,alpha=3+reduce:dimension=64",
    "average+average:k=3+expand:alpha=0.1+rerank:k1=40,weight=0.1", "whiten:shrinkage=0.123456789+diffuse:gamma=4"])
def test_the_text_of_a_recipe_is_read_back(text: str) -> None:
    recipe = Recipe.parse(text)
    assert Recipe.parse(str(recipe)) == recipe
    assert len(recipe.steps) == (text.count("+") + 1 if text else 0)


def test_defaults_are_left_out_of_the_text() -> None:
    assert str(Recipe((Average(k=10, times=2), Rerank(weight=0.0)))) == "average:times=2+rerank:weight=0"


@pytest.mark.parametrize(("text", "message"), [
    ("whitten", "A recipe has the steps views, whiten, average, reduce, expand, rerank, diffuse, joined by '.'; got "
                "'whitten'"),
    ("average:k=-1", r"average: k must be a whole number between 0 and 500, got -1\."),
    ("average:k=ten", r"average: k must be a whole number between 0 and 500, got 'ten'\."),
    ("average:n=1", "The step 'average' has the options k, times, alpha; got 'n'"),
    ("average:k", "must be field=value, joined by ','; got 'k'"),
    ("average:k=1,k=2", "Name the option 'k' of 'average' once"),
    ("whiten:covariance=all", "whiten: covariance must be one of 'neighbors', 'images', got 'all'"),
    ("diffuse:alpha=1", r"diffuse: alpha must be between 0 and 1 \(0 and 1 excluded\), got 1"),
    ("whiten+views", "'whiten' must come after 'views'"),
    ("rerank+average", "'rerank' must come after 'average'"),
    ("expand+whiten", "'expand' must come after 'whiten'"),
    ("rerank+diffuse", "Remove 'rerank' or 'diffuse'"),
    ("whiten++average", "got ''"),
])
def test_a_wrong_recipe_names_the_step_and_the_value(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        Recipe.parse(text)


@pytest.mark.parametrize("name", STEPS)
def test_every_step_has_defaults_and_texts(name: str) -> None:
    step = make_step(name, {})
    assert str(step) == name
    assert step.title
    assert step.idea.endswith(".")
    assert step.technique.endswith(".")
    assert not re.search("reciprocal|mutual|Jaccard|graph|principal|weighted", f"{step.title} {step.idea}"), (
        "the terms of papers stand in the technique")
    assert step.source


def test_which_steps_see_the_gallery() -> None:
    assert not Recipe.parse("views+whiten+reduce").sees_gallery(has_training=True)
    assert Recipe.parse("views+whiten").sees_gallery(has_training=False)
    assert not Recipe.parse("views").sees_gallery(has_training=False)
    for step in ("average", "expand", "rerank", "diffuse"):
        assert Recipe.parse(step).sees_gallery(has_training=True)


@pytest.mark.parametrize(("recipe", "added"), [
    ("whiten", ""), ("average:k=0", ""), ("average+expand", ""), ("average+rerank", ""), ("average", "'+expand'"),
    ("average:k=20,times=2,alpha=3+reduce", "'+expand:k=20,alpha=3'")])
def test_averages_without_expansion_need_caution(recipe: str, added: str) -> None:
    caution = Recipe.parse(recipe).caution()
    assert caution == "" if not added else f"Add {added} for such queries" in caution
