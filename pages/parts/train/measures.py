"""What is measured while a run trains and when it has ended: progress, curves, results and what to do next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from udml_core.numerics.measures import MAIN_MEASURES, curve_of
from udml_core.runs import Run
from udml_core.runs.baselines import read_baselines
from udml_core.runs.opinions import adds_nothing, kept_words
from udml_core.runs.run_comparison import settings_of
from udml_core.runs.tasks import LIVE_STATES, Status
from udml_core.runs.verdict import still_words
from udml_core.work import jobs

from ..draw.figures import curve
from ..draw.palette import percent
from ..draw.result_bars import show_bars
from ..runs.coming import is_judged_later
from ..runs.opinion import show_opinion
from ..runs.rivals import offer_choice
from ..shell.cached import dataset_of
from ..shell.run_status import (
    ICONS,
    escaped,
    escaped_message,
    method_title,
    run_title,
    state_line,
)
from ..shell.user_errors import show_user_errors
from ..shell.views import view_link
from .served_curves import GAIN, lost_words, titles_of
from .start_map import raw_words
from .start_steps import is_starting, show_steps
from .watched import rows_of_moments

MOST_CURVES = 2
HEIGHT = 190
ONE_JUDGE = "One judge's view of each epoch, against the plain search."


def show_measures(run: Run, status: Status, leave: Callable[[], None], epoch: float | None, chosen: str) -> None:
    """Show the state of a run, its curves, and when it has ended what can be done with it.

    Args:
        run: The run.
        status: Its status.
        leave: Shows the preview in place of the run.
        epoch: The epoch that the map shows, which the curves mark; None before the first.
        chosen: Name of the method that is chosen for the next run.
    """
    st.markdown(f"{ICONS[status.state]} **{escaped(run_title(run))}**")
    if run.spec().method != chosen:
        st.caption(f"This is a run of {escaped(method_title(run))}. The choices on the left are for the next run.")
    if status.state in LIVE_STATES:
        _show_progress(run, status)
    elif status.state == "done":
        _show_result(run)
    else:
        _show_end(run, status)
    names, has_ended = curves_of(run), status.state not in LIVE_STATES
    _show_curves(run, names[:1], epoch, has_ended)  # the most telling one stands beside the map
    if has_ended and st.button(
            "Change a value and train again", icon=":material/tune:", key="lab-again", width="stretch", on_click=leave,
            help="The map shows the images before training again. Your values stay in the form."):
        st.rerun(scope="app")  # the form follows, not this part alone
    _show_curves(run, names[1:], epoch, has_ended)


def show_expected(last: Run | None, example: Run | None, method: str) -> None:
    """Show the result of the last training, else an example's, on the same images, where a run's own appears later.

    Args:
        last: The user's last training on the images; None without one.
        example: An example on the images; None without one.
        method: Name of the chosen method, whose example is shown.
    """
    if last is not None:
        st.caption(f"Of your last training, {escaped(run_title(last))}:")
        _show_result(last)
        return
    evaluation = None if example is None or example.spec().method != method else example.evaluation()
    if example is None or not evaluation or (evaluation.get("final") or {}).get(MAIN_MEASURES[0].key) is None:
        st.caption("The measures of the run appear here.")
        return
    st.caption("The example to beat:")
    show_bars(method_title(example), evaluation, example.spec(), raw_words(example.spec()))


def _show_progress(run: Run, status: Status) -> None:
    """Show the steps of a start, and the ways on once the images can be searched."""
    if is_starting(run, status):
        show_steps(run, status)
    if status.can_search:  # the measures follow
        _show_ways(run)


def _show_result(run: Run) -> None:
    """Show the main measures beside what needs no training, the verdict, and the ways on."""
    evaluation = run.evaluation() or {}
    final = evaluation.get("final") or {}
    if any(final.get(measure.key) is not None for measure in MAIN_MEASURES):
        raw = raw_words(run.spec())
        still = still_words(evaluation)
        if still:
            st.markdown(f"**{still}**")
        show_bars(method_title(run), evaluation, run.spec(), raw, _beside_example(run, final))
        if still:
            _offer_another(run)
    else:
        st.markdown("**Did it help?**", help="These images have no classes, so encoders that took no part compare the "
                                             "search after training with the plain search.")
        show_opinion(run, is_brief=True)
        if not is_judged_later(run):
            with st.container(horizontal=True, gap="small", key="lab-choose"):
                offer_choice(run, "lab")
    if run.kept_epoch() < max(run.epoch_numbers(), default=0) and (kept := kept_words(run)):
        st.caption(f":material/bookmark: {kept}")  # else the result may not be what the last frame showed
    _show_ways(run)


def _show_ways(run: Run) -> None:
    """Show the links to the views of a run that has embedded all images."""
    with st.container(horizontal=True, gap="small", key="lab-ways"):
        for view, label, icon in (("retrieval", "Search", "image_search"), ("explore", "Explore", "explore"),
                                  ("runs", "Runs", "monitoring")):
            view_link(view, label=label, icon=f":material/{icon}:", width="content", query_params={"run": run.id})


def _offer_another(run: Run) -> None:
    """Offer the example's method, with its result, if an example on the same images ended above PCA."""
    dataset = dataset_of(run)
    winner = jobs.winning_example(dataset, run.root)
    example = jobs.find_example(dataset, run.root, winner)
    if not winner or winner == run.spec().method or example is None:
        return
    st.caption(f"The example {escaped(jobs.example_title(example))} reached {jobs.proof_of(example)}.")
    view_link("train", label="Choose the example's settings", icon=":material/swap_horiz:",
              query_params={"dataset": dataset.name, "method": winner})


def _beside_example(run: Run, final: dict[str, float]) -> str:
    """Say why a run with an example's settings can differ from it by a few queries; nothing for other runs."""
    example = jobs.find_example(dataset_of(run), run.root, run.spec().method)
    if example is None or example.id == run.id or settings_of(example) != settings_of(run):
        return ""
    theirs = ((example.evaluation() or {}).get("final") or {}).get("recall@1")
    if theirs is None or final.get("recall@1") is None:
        return ""
    same = abs(theirs - final["recall@1"]) < 0.05
    return (f"Settings and seed of the example, whose first result is right for {percent(theirs)}"
            + ("." if same else ": processors round differently, and training carries the difference to a few of the "
                                f"{final['images']:,.0f} queries."))


def _show_end(run: Run, status: Status) -> None:
    """Say why a run ended without results, and offer to resume it."""
    if status.state == "failed":
        st.error(escaped_message(state_line(run, status)), icon=":material/error:")
        with st.expander("Last lines of the error trace"):
            st.code(run.error() or run.log_tail(), language=None)
    else:
        st.warning(escaped_message(state_line(run, status)), icon=":material/pause_circle:")
    if st.button("Resume", icon=":material/resume:", key=f"lab-resume-{run.id}", width="stretch"):
        with show_user_errors():
            jobs.resume(run)
            st.rerun(scope="app")


def curves_of(run: Run) -> list[str]:
    """Return the curves that tell most, of those with two values or more."""
    rows = rows_of_moments(run)
    return [name for name in titles_of(run) if sum(row.get(name) is not None for row in rows) > 1][:MOST_CURVES]


def _show_curves(run: Run, names: Sequence[str], epoch: float | None, has_ended: bool) -> None:
    """Show curves, with the values to beat and the shown epoch as lines, and what later epochs of an ended run lost."""
    rows = rows_of_moments(run)
    known, titles = read_baselines(run) or {}, titles_of(run)
    for name in names:
        beaten = {words: known[key][name] for key, words in (("frozen", raw_words(run.spec())), ("centered pca", "PCA"))
                  if (known.get(key) or {}).get(name) is not None}
        st.markdown(f"**{titles[name]}**", help=curve_of(name).help)
        curve(name, {"": rows}, f"lab-{name}", height=HEIGHT, title=titles[name], beaten=beaten,
              cursor=epoch, narrow=True)
        if has_ended and curve_of(name).axis == GAIN:
            of_all = " The verdict above is of all judges." if run.stored_status().state == "done" else ""
            st.caption(ONE_JUDGE + of_all)
        if name == names[0] and (begins := _beginning_words(run, rows, name, beaten)):
            st.caption(begins)
        if has_ended and not adds_nothing(run) and (lost := lost_words(rows, name)):  # else the verdict says it
            st.caption(f":material/trending_down: {lost}")


def _beginning_words(run: Run, rows: Sequence[Mapping[str, Any]], name: str, beaten: Mapping[str, float]) -> str:
    """Say why a curve begins below the features from which training starts; empty if it does not."""
    spec, before = run.spec(), next((row.get(name) for row in rows if row["epoch"] == 0), None)
    raw = raw_words(spec)
    start = 0.0 if curve_of(name).axis == GAIN else beaten.get(raw)  # a gain over these features
    if before is None or start is None or before >= start or spec.fields.get("beginning") != "random":
        return ""
    return (f"Begins below {raw}: epoch 0 is before training, when a new layer turns each image's features into "
            f"{spec.fields['dimension']} random mixtures.")
