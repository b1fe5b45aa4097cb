"""Measures before and after a recipe, and the images that its steps have seen."""

from __future__ import annotations

import streamlit as st

from udml_core.exploration import refining
from udml_core.exploration.race_figures import SAID, said_word
from udml_core.exploration.refining import RefinedGallery
from udml_core.numerics.measures import MAIN_MEASURES, MEASURES, Measure
from udml_core.numerics.refinement import STEPS, Recipe
from udml_core.runs import Run
from udml_core.runs.analyses import Refined, analysis_at, plan_analysis
from udml_core.runs.analyses.kinds.opinion import Opinions
from udml_core.runs.analyses.kinds.refine import Refinement
from udml_core.runs.verdict import MEASURED

from ..draw.palette import change_style, signed
from ..shell.analyses import load_result
from ..shell.pools import images_of
from ..shell.race_verdict import race_verdict, refined_words
from .live import Live
from .raced import raced_recipe, raced_words, show_raced_metrics
from .verdict import GRAPH_MEASURES, explain_verdict, opinions_on, show_verdict_metrics

SHOWN = tuple(MEASURES[key] for key in ("recall@1", "map@r", "reciprocity", "hubness", "neighbor stability"))
"""The measures of a refinement."""
SMALL = 0.5
"""Points up to which a change is shown without a color."""


def show_measures(live: Live, refined: RefinedGallery) -> None:
    """Show the measures before and after, and the verdict without labels, which comes first if images lack labels."""
    if refined.recipe.find("views") and not live.has_views:
        st.info("The figures below leave out the views, because their features are not computed yet. Apply to all "
                "images computes them.", icon=":material/visibility_off:")
    raced = raced_recipe(live.run, str(refined.recipe))
    # A verdict on all images stands alone: a live estimate on fewer could say something else beside it.
    opinions, scope = opinions_on(live, refined) if refined.recipe.steps and raced is None else (None, "")
    measures = refining.measure(refined, live.labels)
    measures |= {key: values for key, values in exact_measures(live.run, refined.recipe).items() if key in measures}
    shown = [of for of in SHOWN if of.key in measures and of.key not in GRAPH_MEASURES]
    said = verdicts_in_view(live.run, refined.recipe, opinions)
    with st.container(horizontal=True, gap="small",
                      key="refine-measures" if live.labels is not None else "refine-verdicts"):
        if raced is not None:
            show_raced_metrics(raced)
        elif live.labels is None:
            show_verdict_metrics(refined, opinions)
        for of in shown:
            if refined.recipe.steps:
                show_change(of, *measures[of.key], said.get(of.key, ""))
            elif of.better != "neither":
                st.metric(of.plain or of.name, of.text(measures[of.key][0]), help=explained(of), width="content")
    if raced is None:
        explain_verdict(live, refined, opinions, scope, measures)
    else:
        st.caption(raced_words(raced, live.total), help=race_verdict(live.run, str(refined.recipe)))


def exact_measures(run: Run, recipe: Recipe) -> dict[str, tuple[float, float]]:
    """Return the measures of a recipe that was applied to all images, which take the place of live estimates."""
    analysis = analysis_at(run, plan_analysis(Refinement, recipe=str(recipe)))
    result = load_result(run, analysis.id) if recipe.steps and analysis.is_done() else None
    return dict(result.measures) if isinstance(result, Refined) else {}


def verdicts_in_view(run: Run, recipe: Recipe, opinions: Opinions | None) -> dict[str, str]:
    """Return what judges without labels say of a recipe, as the page words it, by measure; empty without a verdict."""
    words = refined_words(run, str(recipe)) if recipe.steps else None
    if words is None and opinions is not None:
        first, groups = (said_word(of) for of in opinions.measured(str(recipe)))
        words = first, groups
    return {} if words is None else dict(zip(MEASURED, words, strict=True))


def explained(of: Measure) -> str:
    """Return the help of a measure, with the name that papers use where the page shows plain words."""
    return f"{of.name}. {of.help}" if of.plain else of.help


def show_change(of: Measure, before: float, after: float, said: str = "") -> None:
    """Show a measure after a recipe, and how it changed.

    Args:
        of: The measure.
        before: Its value before the recipe.
        after: Its value after the recipe.
        said: What judges say of this measure; the change has no color against their words.
    """
    name = of.plain or of.name
    if of.better == "neither":
        st.metric(name, of.text(after), help=explained(of), width="content")
        return
    style = change_style(after - before, of.digits, lower_is_better=of.better == "lower")
    if is_colorless(of, after - before, said):
        style |= {"delta_color": "off"}
    st.metric(name, of.text(after), f"{signed(after - before, of.digits)} from {of.text(before)}",
              help=explained(of), width="content", **style)


def is_colorless(of: Measure, change: float, said: str) -> bool:
    """Return whether a change is too small for a color, or judges do not say the same."""
    change = round(change, of.digits)
    if of.is_percent and abs(change) <= SMALL:
        return True
    is_better = (change > 0) == (of.better == "higher")
    return said in SAID.values() and said != SAID["better" if is_better else "worse"]


def warn_of_fall(live: Live, refined: RefinedGallery) -> None:
    """Show a warning if R@1 falls."""
    if live.labels is not None and refined.recipe.steps:
        fall, error = refining.recall_change(refined, live.labels)
        if fall < -error:  # a smaller fall may be an accident of the sample
            sample = f" (± {error:.1f}, because it is measured on a sample)" if error else ""
            st.warning(f"The first result is right less often, by {-fall:.1f} points{sample}, even if the whole "
                       "ranking improves. Fewer neighbors or repetitions, views, or re-ranking instead of averaging "
                       "often help.", icon=":material/trending_down:")


def show_protocol(live: Live, refined: RefinedGallery) -> None:
    """Show which images each step uses, and where the live figures are approximate."""
    words = {"nothing": "no other image", "training half": "the training half",
             "gallery": f"the searched {images_of(live.run, 'test')} without their labels, the queries among them"}
    seen = refining.seen_images(refined.recipe, live.has_training)
    sees = any(images == "gallery" for _, images in seen)
    first = ("The searched images themselves take part, so new images do not have the recipe until it is applied again"
             if sees else "No searched image takes part, so new images have the recipe at once")
    steps = "; ".join(f"{STEPS[name].title.lower()}: {words[images]}" for name, images in seen)
    if refining.voting_step(refined) == "average":
        st.caption("**Queries from outside the gallery** are not averaged, so their plain similarity (cosine) "
                   "ranks them less well. The page Search adds query expansion with the same neighbors; in Python, "
                   "switch on **Query expansion** before you copy the recipe.")
    if steps:
        measured = " No step uses labels; only the measures do." if live.labels is not None else ""
        st.caption(f"**{first}.** What each step uses: {steps}.{measured}")
    if not live.run.is_normalized("final"):
        st.caption("Before refinement: nearest by Euclidean distance, as on the page Search. After refinement: "
                   "nearest by direction (cosine), because every recipe begins with embeddings of unit length.")
    queries, stage = live.gallery.before.queries, live.gallery.start
    of = f"{len(live.images):,} evenly spaced of {live.total:,}" if live.total > len(live.images) else f"{live.total:,}"
    width = live.gallery.before.embedding.shape[1]
    kept = (f", {stage.rows.shape[1]} components of {width} ({100 * live.gallery.kept:.1f} % of the squared length)"
            if stage.rows.shape[1] < width else "")
    st.caption(f"Live figures: {len(queries):,} evenly spaced queries against {of} {images_of(live.run, 'test')}{kept};"
               f" neighbors are searched among each image's {stage.candidates.shape[1]} nearest. Apply to all images "
               "for exact figures.")
    measures = refining.measure(refined, live.labels)
    st.caption(" ".join(f"**{of.plain_title}**: {of.help}" for of in SHOWN if of.key not in GRAPH_MEASURES
                        and (live.labels is not None or of not in MAIN_MEASURES)))
    if live.labels is None:
        return
    st.caption("The graph of all neighbors, which does not follow the quality of a search and so decides nothing: "
               + " ".join(f"**{of.name}** {of.text(measures[of.key][0])} → {of.text(measures[of.key][1])}. {of.help}"
                          for of in SHOWN if of.key in GRAPH_MEASURES and of.key in measures))
