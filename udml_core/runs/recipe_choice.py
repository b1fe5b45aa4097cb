"""The refinement that a run begins with, who judged it, and the judges that can judge another recipe at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from udml_core.base.arrays import evenly_spaced
from udml_core.base.errors import UserError, listed
from udml_core.exploration.race_figures import recipe_words, said_words
from udml_core.numerics.refinement.recipe import Recipe
from udml_core.runs.analyses import AnalysisSpec, plan_analysis
from udml_core.runs.analyses.kinds.opinion import RECIPES, Opinions, SecondOpinion
from udml_core.runs.opinions import OF_REFINEMENTS, judge_words, opinion_of, stored_judges

if TYPE_CHECKING:
    from udml_core.data.dataset import Dataset
    from udml_core.runs import Run

MILDEST = "whiten"
"""The recipe of a run that is not judged yet; the method of this name has applied it."""
MOST_LOST = 0.3
"""Points of R@1 and MAP@R that it loses at most on the frozen features of the records."""
NARROW = 16
"""Dimensions below which it is not tried without a second opinion: it lowers R@1 of the examples RPML and SSDML on
digits, with 4 and 8 dimensions, by 3 points; no example with 16 loses a point."""


@dataclass(frozen=True)
class RecipeChoice:
    """The refinement that a run begins with.

    Attributes:
        recipe: The recipe; empty for the embedding itself.
        opinions: The second opinion that prefers it; None if there is none yet.
    """

    recipe: str
    opinions: Opinions | None

    @property
    def words(self) -> str:
        """Why this recipe, and who judged it, in a sentence or two; its verdicts stand beside its measures."""
        if self.opinions is None and not self.recipe:
            return ("No step is on until this run is judged: even whitening can harm an embedding that has fewer than "
                    f"{NARROW} dimensions or is whitened already.")
        if self.opinions is None:
            return ("Whitening is the mildest recipe: on the frozen features of birds, CIFAR-10, digits and clothes it "
                    f"lowers neither R@1 nor MAP@R by more than {MOST_LOST:g} points. This run is not judged yet.")
        judges = names_of(self.opinions)
        if not self.recipe:
            return (f"**Judges recommend no refinement**: of {len(self.opinions.opinions)} recipes, {judges} find none "
                    "clearly better. They see looks, not your classes: switch a step on, and judge your own query.")
        return (f"{self._recommended}. Chosen by {judges}, without labels: of {len(self.opinions.opinions)} recipes, "
                "this has the largest gain in whole groups without a worse first result.")

    @property
    def recommendation(self) -> str:
        """The preferred recipe and its verdicts, in Markdown, beside another recipe; empty without one."""
        if self.opinions is None or not self.recipe:
            return ""
        name = next(name for name in self.opinions.opinions if plainly(name) == self.recipe)
        return f"{self._recommended} ({said_words(*self.opinions.verdicts(name))})."

    @property
    def _recommended(self) -> str:
        return f"**Recommended: {recipe_words(Recipe.parse(self.recipe))}**"


def recipe_choice(run: Run) -> RecipeChoice:
    """Return the refinement that the second opinion prefers for a run; without it, the mildest that is safe."""
    opinions = opinion_of(run, OF_REFINEMENTS)
    if opinions is not None:
        return RecipeChoice(plainly(opinions.preferred() or ""), opinions)
    is_safe = run.spec().method != MILDEST and run.embeddings("final").shape[1] >= NARROW
    return RecipeChoice(MILDEST if is_safe else "", None)


def plainly(recipe: str) -> str:
    """Return a recipe without default values, as the pages write it."""
    return str(Recipe.parse(recipe))


def names_of(opinions: Opinions) -> str:
    """Return the names of the judges in a sentence."""
    return listed([judge_words(judge) for judge in opinions.judges])


def request_on(recipe: str) -> AnalysisSpec:
    """Return the request for a second opinion that includes a recipe, which is written plainly."""
    if recipe in map(plainly, RECIPES):
        return OF_REFINEMENTS
    return plan_analysis(SecondOpinion, frames=("final",), recipes=(recipe,))


def stored_opinion_on(run: Run, recipe: str) -> Opinions | None:
    """Return the finished second opinion on a recipe, under its plain name alone; None if there is none."""
    opinions = opinion_of(run, request_on(recipe)) if recipe else None
    if opinions is None:
        return None
    name = next((name for name in opinions.opinions if plainly(name) == recipe), None)
    return None if name is None else replace(opinions, opinions={recipe: opinions.opinions[name]})


def why_not_judged(run: Run) -> str:
    """Return why no encoder can judge a run, and what to do; empty if some can."""
    try:
        OF_REFINEMENTS.build_kind().check_run(run)
    except UserError as error:
        return str(error)
    return ""


def judge_paths(run: Run, dataset: Dataset) -> dict[str, Path]:
    """Return where the features of judges are stored, by name.

    Returns:
        The judges that took no part in the run and whose features are stored; none if the rest cannot judge alone.
    """
    from udml_core.data.encoders import choose_spec
    from udml_core.data.features import features_path
    from udml_core.numerics.kinship import SAMPLE

    if why_not_judged(run):
        return {}
    images = run.spec().halves(dataset).test
    images = images[evenly_spaced(len(images), SAMPLE)]
    return {name: features_path(dataset, choose_spec(name, dataset.native_size, dataset.gray))
            for name in stored_judges(run, dataset, images)}
