"""The verdict without labels on the recipe in view, and why the page opens with its recipe."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, wait
from pathlib import Path
from threading import Thread

import streamlit as st

from udml_core.base.errors import capitalized
from udml_core.base.files import read_array
from udml_core.exploration import refining
from udml_core.exploration.race_figures import NO_VERDICT, SAID, recipe_words, said_word, said_words
from udml_core.exploration.refining import LiveJudge, RefinedGallery
from udml_core.numerics.refinement import Recipe
from udml_core.numerics.second_opinion import LEAST, Judge
from udml_core.runs import Run
from udml_core.runs.analyses import AnalysisSpec, analysis_at
from udml_core.runs.analyses.kinds.opinion import QUESTIONS, Opinions
from udml_core.runs.opinions import (
    DECIDES,
    OF_REFINEMENTS,
    QUESTION_WORDS,
    agreement,
    judge_weights,
    judge_words,
)
from udml_core.runs.recipe_choice import (
    judge_paths,
    names_of,
    recipe_choice,
    request_on,
    stored_opinion_on,
    why_not_judged,
)
from udml_core.runs.tasks import LIVE_STATES
from udml_core.work import jobs
from udml_core.work.jobs.raced import judged_in_race

from ..draw.palette import signed
from ..shell.analyses import request_analysis
from ..shell.race_judgments import show_judgments_of
from ..shell.race_verdict import race_verdict, show_conclusion_of
from ..shell.run_hash import RUN_HASH
from ..shell.user_errors import show_user_errors
from ..shell.warming import SCRIPT_THREAD
from .cards import advised_recipe, forget_widgets, write_recipe
from .live import Live, load_live
from .raced import compared_words, less_words, raced_recipe

HELP = ("Is the first result of a query right more often? Compared with the embedding after training, by encoders that "
        "took no part in this run. It follows R@1.",
        "Does the whole group of a query come first more often? Compared with the embedding after training, by "
        "encoders that took no part in this run. It follows MAP@R.")
GRAPH_MEASURES = ("reciprocity", "hubness")
AGREEMENTS = {"agree": "The labels agree with both.", "disagree": "The labels disagree with both.",
              "undecided": "Nothing is decided that the labels could confirm."}
ADVISED = ":material/trophy: The race for the best search advises these steps."
TRIED = ":material/balance: The race for the best search tried these steps."
PATIENCE = 0.2
"""Seconds that the page waits for the judges; then it is shown, and the verdict follows."""
Measures = dict[str, tuple[float, float]]


def show_choice(run: Run, recipe: Recipe) -> None:
    """Say why the page opens with its recipe; offer the preferred recipe, or to compute the second opinion.

    The verdict on the recipe in view stands beside the measures, once.
    """
    choice = recipe_choice(run)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="refine-choice"):
        if recipe.steps and raced_recipe(run, str(recipe)) is not None:
            if not show_conclusion_of(run, str(recipe)):
                st.caption(ADVISED if advised_recipe(run) == str(recipe) else TRIED, width="stretch")
                show_judgments_of(run, str(recipe))
            _offer_advised(run, recipe)
        elif not recipe.steps and advised_recipe(run):
            st.caption("No step is on. Switch a step on at the side, or take what the race advises.", width="stretch")
            _offer_advised(run, recipe)
        elif choice.opinions is None:
            reason, raced = why_not_judged(run), race_verdict(run)
            if raced and recipe.steps:
                raced = f"No race tried the settings in view. {raced}"
            words = f"{choice.words} {reason or _pending_words(run, OF_REFINEMENTS)}".strip()
            st.caption(f":material/balance: {raced}" if raced else words, width="stretch")
            if not reason:
                _offer_opinion(run, OF_REFINEMENTS, "refine-opinion")
        elif str(recipe) == choice.recipe:
            st.caption(choice.words, width="stretch")
        elif advised_recipe(run):  # the race decides, as on other pages
            st.caption("No race tried the settings in view.", width="stretch")
            _offer_advised(run, recipe)
        else:
            st.caption(choice.recommendation or choice.words, width="stretch")
            st.button("Use the recommended recipe" if choice.recipe else "Remove all steps", key="refine-preferred",
                      icon=":material/thumb_up:", type="tertiary", on_click=_use, args=(choice.recipe,))


def _offer_advised(run: Run, recipe: Recipe) -> None:
    """Offer the recipe that a race advises, and say how much less the recipe in view gains."""
    advised, raced = advised_recipe(run), raced_recipe(run, str(recipe))
    if not advised or advised == str(recipe):
        return
    if raced is not None and (less := less_words(raced)):
        st.caption(f":orange[:material/trending_down:] **{less}**", width="stretch")
    st.button("Use the advised recipe", key="refine-advised", icon=":material/trophy:", type="tertiary",
              on_click=_use, args=(advised,), help="What the race for the best search advises.")


def _use(recipe: str) -> None:
    """Show another recipe in place of the one in view."""
    forget_widgets()
    write_recipe(Recipe.parse(recipe))


def _pending_words(run: Run, spec: AnalysisSpec) -> str:
    return "The judges look at it now; the settings stay as they are until you change them." if _is_live(
        run, spec) else ""


def _is_live(run: Run, spec: AnalysisSpec) -> bool:
    analysis = analysis_at(run, spec)
    return analysis.folder.exists() and analysis.status().state in LIVE_STATES


def _offer_opinion(run: Run, spec: AnalysisSpec, key: str) -> None:
    """Show the button that computes a second opinion, or tries it again if it ended early or is damaged."""
    analysis = analysis_at(run, spec)
    if analysis.folder.exists() and analysis.status().state not in LIVE_STATES:
        if st.button("Judge again", icon=":material/replay:", key=f"{key}-again",
                     help=analysis.status().message or None):
            with show_user_errors():
                jobs.analyse(run, spec)
                st.rerun()
    elif not analysis.folder.exists():
        request_analysis(run, spec, "Judge without labels", key,
                         "Encoders that took no part in this run compare the results before and after refinement. "
                         "Their features are stored, so later every recipe is judged at once.")


def opinions_on(live: Live, refined: RefinedGallery) -> tuple[Opinions | None, str]:
    """Return what judges say of the recipe in view, and on how many images; None if no judge can say it at once."""
    name = str(refined.recipe)
    stored = stored_opinion_on(live.run, name)
    if stored is not None:
        return stored, f" on all searched images and the first {stored.group} results of a query"
    judges = load_judges(live)
    opinion = refining.judge_recipe(judges, refined) if judges else None
    if opinion is None:
        return None, ""
    scope = (f" in a live estimate on {len(refined.before.queries):,} queries and their first {opinion.group} "
             "results")
    fewer = f" of {opinion.wanted}, because the recipe ranks no more" if opinion.group < opinion.wanted else ""
    return Opinions("final", {name: opinion.opinions}, judge_weights([live.run], judges), opinion.group), scope + fewer


def load_judges(live: Live) -> dict[str, LiveJudge]:
    """Return the judges whose features are stored, prepared once for the live images; none until they are prepared."""
    preparing = preparing_judges(live)
    if preparing is None or not wait([preparing], PATIENCE).done:
        return {}
    return preparing.result()


def preparing_judges(live: Live) -> Future[dict[str, LiveJudge]] | None:
    """Return the preparation of the judges whose features are stored; None if none can judge."""
    paths = judge_paths(live.run, live.dataset) if len(live.images) >= LEAST else {}
    return _prepare(live.run, tuple(paths), live, paths) if paths else None


@st.cache_resource(max_entries=4, show_spinner=False, hash_funcs=RUN_HASH)
def _prepare(run: Run, names: tuple[str, ...], _live: Live, _paths: Mapping[str, Path]  # noqa: ARG001 (the key)
             ) -> Future[dict[str, LiveJudge]]:
    """Prepare judges in the background: whitening 3,072 pixels takes half a minute."""
    prepared: Future[dict[str, LiveJudge]] = Future()

    def prepare() -> None:
        try:
            prepared.set_result({name: LiveJudge.of(Judge.of(read_array(path, mapped=True)[_live.images]),
                                                    _live.gallery.before.queries) for name, path in _paths.items()})
        except Exception as error:  # the page shows it
            prepared.set_exception(error)

    Thread(target=prepare, name=f"{SCRIPT_THREAD}: judges").start()  # not a daemon, as in the preview of Train
    return prepared


@st.fragment(run_every="1s")
def _show_preparing(preparing: Future[dict[str, LiveJudge]]) -> None:
    """Say that the judges are prepared; the page runs again when they are."""
    if preparing.done():
        st.rerun()
    st.caption(":material/hourglass_top: Preparing the judges; the verdict follows …")


def show_verdict_metrics(refined: RefinedGallery, opinions: Opinions | None) -> None:
    """Show both verdicts as figures beside the measures."""
    if opinions is not None and refined.recipe.steps:
        for question, of, text in zip(QUESTION_WORDS, opinions.measured(str(refined.recipe)), HELP, strict=True):
            st.metric(question, said_word(of), help=f"{text} {NO_VERDICT}" if of.is_undervalued else text,
                      width="content")


def explain_verdict(live: Live, refined: RefinedGallery, opinions: Opinions | None, scope: str, measures: Measures
                    ) -> None:
    """Say who judged the recipe in view and whether the labels agree; without a verdict, offer to compute it."""
    if not refined.recipe.steps:
        return
    if opinions is None:
        _explain_missing(live, refined)
        return
    labeled = live.labels is not None
    said = f" {agreement_words(opinions, str(refined.recipe), measures)}" if labeled else ""
    left, right = st.columns([5, 1], vertical_alignment="center")
    with left:
        by = f"Judged without labels by {names_of(opinions)}{scope}."
        if labeled:
            st.markdown(f"**{verdict_words(opinions, str(refined.recipe))}**, judged without labels.{said}",
                        help=by)
        else:
            st.caption(by)
        if less := _less_than_advised(live, refined, opinions):
            st.caption(f":orange[:material/trending_down:] **{less}**")
    with right, st.popover("Details", icon=":material/gavel:", type="tertiary"):
        show_judges(opinions, str(refined.recipe))


def _less_than_advised(live: Live, refined: RefinedGallery, opinions: Opinions) -> str:
    """Say how much less the recipe in view gains than a race's advice, as the same judges see both on these images."""
    name, advised = str(refined.recipe), advised_recipe(live.run)
    judged = judged_in_race(live.run)
    if not advised or advised == name or judged is None:
        return ""
    if stored_opinion_on(live.run, name) is not None:
        other = stored_opinion_on(live.run, advised)
    else:
        other = _live_opinion(live.run, advised, tuple(load_judges(live)))
    if other is None:
        return ""
    race = judged[0]
    place = 1 if race.serves == "groups" else 0
    own, best = (of.measured(recipe)[place] for of, recipe in ((opinions, name), (other, advised)))
    said = compared_words(own, best, recipe_words(Recipe.parse(advised)), race.serves)
    return said and (f"{said[:-1]}, both as judged here. The race judged more queries, so its figures differ a little; "
                     "its verdict decides.")


@st.cache_resource(max_entries=8, show_spinner=False, hash_funcs=RUN_HASH)
def _live_opinion(run: Run, name: str, judges: tuple[str, ...]) -> Opinions | None:  # noqa: ARG001 (the key)
    recipe = Recipe.parse(name)
    live = load_live(run, recipe)
    if recipe.find("views") and not live.has_views:
        return None
    return opinions_on(live, live.gallery.refine(recipe))[0]


def _explain_missing(live: Live, refined: RefinedGallery) -> None:
    preparing = preparing_judges(live)
    if preparing is not None and not preparing.done():
        _show_preparing(preparing)
        return
    spec = request_on(str(refined.recipe))
    if why_not_judged(live.run) or len(live.images) < LEAST:
        st.caption(f"Without labels this recipe cannot be judged. {why_not_judged(live.run)}".strip())
    elif spec.id != OF_REFINEMENTS.id or recipe_choice(live.run).opinions is not None:
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key="refine-verdict"):
            st.caption(f"These settings are not judged yet. {_pending_words(live.run, spec)}", width="stretch")
            _offer_opinion(live.run, spec, "refine-opinion-recipe")


def verdict_words(opinions: Opinions, recipe: str) -> str:
    """Return both verdicts in words, such as "Better first results, worse whole groups"."""
    measured = opinions.measured(recipe)
    if any(of.is_undervalued for of in measured):
        return " · ".join(f"{question}: {said_word(of)}" for question, of in zip(QUESTION_WORDS, measured, strict=True))
    return capitalized(said_words(*(of.said for of in measured)))


def agreement_words(opinions: Opinions, recipe: str, measures: Measures) -> str:
    """Say whether measures from labels agree with the verdicts on a recipe."""
    before, after = ({name: values[side] for name, values in measures.items()} for side in (0, 1))
    found = list(agreement(opinions.verdicts(recipe), {"frozen": before, "final": after}).values())
    if len(found) < len(QUESTION_WORDS):
        return ""
    if found[0] == found[1]:
        return AGREEMENTS[found[0]]
    return " ".join(f"{question}: the labels {of}." for question, of in zip(QUESTION_WORDS, found, strict=True)
                    if of != "undecided")


def show_judges(opinions: Opinions, recipe: str) -> None:
    """Show each judge's differences with their intervals."""
    lines = []
    for question, title in zip(QUESTIONS, QUESTION_WORDS, strict=True):
        lines += [f"**{title}**", "", *(
            f"- {judge_words(judge)}: **{SAID[of.verdict]}**, {of.before:.3f} → {of.after:.3f}, change "
            f"{signed(of.difference, 3)}, 95 % interval {signed(of.low, 3)} to {signed(of.high, 3)}"
            for judge, of in opinions.intervals(recipe, question).items()), ""]
    lines += [NO_VERDICT] * any(of.is_undervalued for of in opinions.measured(recipe))
    st.markdown("\n".join(lines))
    total = sum(opinions.weights[judge] for judge in opinions.judges) or 1.0
    counts = ", ".join(f"{judge_words(judge)} {100 * opinions.weights[judge] / total:.0f} %" for judge in
                       opinions.judges)
    st.caption(f"Mean similarity (cosine) between a query and its results in each judge's own features. How much each "
               f"counts: {counts}. A verdict needs judges that count for three quarters. {DECIDES}")
