"""A race that ended: its advice, what to do with its winner, and how to run it again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from udml_core.base.errors import counted
from udml_core.data.dataset import Dataset
from udml_core.data.encoders import EncoderSpec
from udml_core.exploration.plain_names import plain_line
from udml_core.exploration.race import Outcome, Race
from udml_core.exploration.race_advice import Advised, figure_line, tell_advice
from udml_core.exploration.race_elsewhere import Elsewhere
from udml_core.exploration.race_figures import (
    AT_ONCE,
    BY_CLASSES,
    COUNTED,
    MEASURES,
    OTHER,
    chain_words,
    group_size_words,
    measured_words,
    scope_words,
    setup_words,
)
from udml_core.exploration.race_gaps import LATE, find_gaps, minutes_words
from udml_core.exploration.race_words import caution_words, is_small, judge_lines, outcome_words
from udml_core.runs import runs_folder
from udml_core.runs.analyses import Analysis, plan_analysis
from udml_core.runs.analyses.kinds.advice import Advice
from udml_core.runs.search.judging_words import CAN_STOP
from udml_core.work import jobs
from udml_core.work.jobs.advising import (
    elsewhere_of,
    find_advice,
    finished_race,
    other_finished_races,
    race_of,
    races_beside,
    restart_advice,
    start_advice,
)

from ..shell.race_judgments import outcome_judgments
from ..shell.run_status import ICONS, escaped
from ..shell.user_errors import show_user_errors
from ..shell.views import open_view
from .race import explained, show_race
from .using import BUDGETS, show_awaited, show_race_button, use_button

ICON = ":material/trophy:"
ALL_TRIED = "Every candidate was tried: more time tries nothing new. Run it again when encoders or images have changed."
KEPT = "Computed features and trained heads are used again, so more candidates fit into the same time."
USE = "Search with it. A refinement of all images is computed first, in seconds."
JUDGING = ("You see a query and where the two searches differ, without their names: the first result, or the first ten "
           "results if the race served whole groups.")


def show_ended(analysis: Analysis, key: str, dataset: Dataset, encoder: EncoderSpec,
               awaited: Analysis | None = None) -> None:
    """Show a race that ended, and what to do with its winner.

    Args:
        analysis: The race.
        key: Key of its chart.
        dataset: The data set.
        encoder: The encoder of the frozen features.
        awaited: The refinement of a search that was chosen, while it is computed.
    """
    status, race = analysis.status(), finished_race(analysis)
    is_done = analysis.is_done() or analysis.has_earlier()
    if status.state != "done":
        _show_stopped(analysis)
    other = elsewhere_of(analysis) if is_done else None
    with st.container(border=True, key="advice-verdict"):
        for_other_aim = None if race.best is not None else _race_for_other_aim(dataset, encoder, race, analysis)
        judged = _judgments(race)
        beside = [of for of, _ in races_beside(analysis)] if is_done else []
        told = tell_advice(race, is_done, None if other is None else other[0], for_other_aim, beside)
        _show_words(race, told, None if other is None else other[0], judged)
        if awaited is not None:
            show_awaited(awaited)
        else:
            _show_actions(race, is_done, other, partial(_show_again, dataset, encoder, race, for_other_aim))
        if judged:
            st.markdown(f":material/thumbs_up_down: {judged}")
        _show_details(race, told)
    show_race(race, f"race-{key}", is_live=False)


def _show_stopped(analysis: Analysis) -> None:
    """Say that a race ended before its time, and what can be done; an earlier race with the same choices stays."""
    state, again = analysis.status(), analysis.has_earlier()
    words = {"stopped": "was stopped", "interrupted": "was interrupted"}.get(state.state, f"has {state.state}")
    with st.container(horizontal=True, vertical_alignment="center"):
        race = race_of(analysis)
        kept = "; its finished candidates stay" if race.judged else " before it judged a candidate"
        st.warning(f"{ICONS[state.state]} The {'new ' * again}race {words}{kept}. "
                   f"{escaped(state.message) if state.state == 'failed' else ''}"
                   f"{'Below is the race that finished before.' * again}")
        if st.button("Continue", icon=":material/replay:", key="advice-continue"):
            with show_user_errors():
                jobs.resume(analysis)
                st.rerun()
        if again and st.button("Keep the finished race", icon=":material/undo:", key="advice-keep", help=(
                "Gives up the new race. Its features and trained heads stay.")):
            with show_user_errors():
                analysis.restore_earlier()
                st.rerun()
    if again and race.judged:  # below stands the finished race alone
        with st.expander(f"The new race judged {counted(len(race.judged), 'candidate')} until then",
                         icon=":material/format_list_bulleted:"):
            st.markdown("\n".join(f"- {escaped(outcome_words(outcome, race))}" for outcome in race.judged))


def _show_words(race: Race, advised: Advised, elsewhere: Elsewhere | None, judged: str) -> None:
    """Show the advice, what its names mean, and what it means for a reader.

    The next step, to judge by eye, is left out once the judgments say that they can stop.

    The sign is a green trophy only if a candidate surely wins and changes enough.
    """
    wins = elsewhere is not None and elsewhere.wins(race)
    is_sure = wins or (race.best is not None and not is_small(race))
    sign = f":green[{ICON}]" if is_sure else ":material/balance:" if race.is_judged else ":material/help:"
    st.markdown(f"#### {sign} {escaped(advised.headline.removesuffix('.'))}")
    named = elsewhere.best if wins and elsewhere is not None else race.best
    if named is not None:
        scope = scope_words(named.setup)
        st.caption(escaped(" · ".join([plain_line(race, named.setup), f"{scope[:1].upper()}{scope[1:]}."])))
    next_step = "" if CAN_STOP in judged else advised.next_step
    line, is_groups = figure_line(race, elsewhere), race.serves == "groups"
    shown = [escaped(sentence) for sentence in advised.shown]
    for text in filter(None, (*shown, BY_CLASSES if line and is_groups else "", escaped(next_step))):
        st.markdown(text)
    if line:
        st.caption(escaped(line),
                   help=f"{COUNTED[race.serves]} {group_size_words(race.group) if is_groups else ''}".rstrip())


def _show_details(race: Race, advised: Advised) -> None:
    """Show figures, explanations and cautions behind a closed line."""
    named, caution = race.best or next(iter(race.judged), None), caution_words(race)
    if not advised.details and named is None:
        return
    with st.expander("Details"):
        st.markdown("\n".join(f"- {escaped(sentence)}" for sentence in advised.details))
        if named is not None:
            if lines := judge_lines(race, named):
                st.markdown(f"Each judge alone, of {escaped(setup_words(race, named.setup))}, as if it were the only "
                            "candidate and the only judge, which decides nothing:\n" + "\n".join(
                    f"- {escaped(line)}" for line in lines))
            st.caption(explained(race, named.setup))
        if caution:
            st.caption(f":material/warning: {escaped(caution)}")


def _judgments(race: Race) -> str:
    """Return what blind judgments say of the advised search, or of the largest gain, in Markdown; empty without any."""
    outcome = race.best or next(iter(race.judged), None)
    return "" if outcome is None else outcome_judgments(race, outcome, ["ten" if race.serves == "groups" else "first"])


def _show_actions(race: Race, is_done: bool, other: tuple[Elsewhere, Analysis] | None,
                  again: Callable[[], None]) -> None:
    """Show the buttons that use the winner, confirm it by judgments, use another candidate, or run the race again."""
    elsewhere = None if other is None else other[0]
    wins_elsewhere = elsewhere is not None and elsewhere.wins(race)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if elsewhere is not None and wins_elsewhere:
            _use_elsewhere(elsewhere, race)
        if race.best is not None:
            use_button("Use this", ":material/image_search:", race, race.best, "retrieval", USE, is_primary=True)
            use_button("Confirm by judgments", ":material/thumbs_up_down:", race, race.best, "compare", JUDGING)
        elif is_done and race.is_judged:
            if st.button("Keep searching as now", icon=":material/image_search:", key="advice-frozen",
                         type="secondary" if wins_elsewhere else "primary"):
                open_view("retrieval", query_params={"run": race.run})
            use_button("Judge the largest gain yourself", ":material/thumbs_up_down:", race, race.judged[0], "compare",
                       f"{setup_words(race, race.judged[0].setup)}: {JUDGING[0].lower()}{JUDGING[1:]}")
        if other is not None and not wins_elsewhere:
            _use_elsewhere(other[0], race)
        if other is not None:
            when = "later" if other[0].is_later else "earlier"
            show_race_button(f"Show the {when} race", other[1].spec(), "advice-other-race")
        if is_done:
            again()
    _show_others(race)


def _use_elsewhere(elsewhere: Elsewhere, race: Race) -> None:
    """Show the button that uses the best search of another race."""
    use_button(f"Use {escaped(elsewhere.search)}", ":material/image_search:", elsewhere.race, elsewhere.best,
               "retrieval", USE, is_primary=elsewhere.wins(race))


def _show_others(race: Race) -> None:
    """Show the other candidates in a list with their figures, each with a button that searches with it.

    The list opens below the actions, so that the verdict stays in view.
    """
    others = [outcome for outcome in race.judged if outcome != race.best]
    if not others:
        return
    with st.expander("Use another candidate", icon=":material/list:"):
        st.caption(f"The largest gain in {MEASURES[race.serves]} first; the intervals hold {AT_ONCE}.")
        for number, outcome in enumerate(others):
            with st.container(horizontal=True, vertical_alignment="center", key=f"advice-other-{number}"):
                words = escaped(chain_words(race, outcome.setup)), escaped(_gain_words(race, outcome))
                st.markdown(f"{words[0]}  \n:small[{words[1]}]", width="stretch")
                use_button("Use it", ":material/image_search:", race, outcome, "retrieval",
                           "Search with it.", key=f"advice-use-{number}")


def _gain_words(race: Race, outcome: Outcome) -> str:
    """Return the verdict on a candidate and its figures in the served measure."""
    return measured_words(race.gain(outcome), MEASURES[race.serves])


def _show_again(dataset: Dataset, encoder: EncoderSpec, race: Race, for_other_aim: Race | None) -> None:
    """Show what runs the race once more, and where candidates are better for the other aim, what leads to it."""
    if race.best is None and race.better_otherwise:
        _show_other_aim(dataset, encoder, race, for_other_aim)
    enough = find_gaps(race).minutes
    with st.popover("Run it again", icon=":material/replay:", key="advice-again"):
        st.caption(KEPT if any(outcome.state in LATE for outcome in race.outcomes) else ALL_TRIED)
        for minutes in BUDGETS:
            fits = ", in which what was left out fits" if int(minutes) == enough else ""
            if st.button(f"{minutes_words(int(minutes))}{fits}", icon=":material/replay:",
                         key=f"advice-again-{minutes}", width="stretch"):
                _start_again(dataset, encoder, race, minutes)


def _race_for_other_aim(dataset: Dataset, encoder: EncoderSpec, race: Race, analysis: Analysis) -> Race | None:
    """Return the finished race that serves what a race does not serve; None without one."""
    for spec in other_finished_races(dataset, encoder, analysis.spec(), runs_folder()):
        if isinstance(kind := spec.build_kind(), Advice) and kind.serves == OTHER[race.serves]:
            found = find_advice(dataset, encoder, spec, runs_folder()).analysis
            return None if found is None else finished_race(found)
    return None


def _show_other_aim(dataset: Dataset, encoder: EncoderSpec, race: Race, for_other_aim: Race | None) -> None:
    """Show the button that leads to the finished race for the other aim, or starts it."""
    aim = OTHER[race.serves]
    found = None if for_other_aim is None else for_other_aim.budget
    label = f"See {MEASURES[aim]}" if found else f"Find the best search for {MEASURES[aim]}"
    if st.button(label, icon=":material/swap_horiz:", key="advice-other-aim",
                 help=None if found else f"A race of {minutes_words(race.budget)}, which keeps this one."):
        with show_user_errors():
            if found is None:
                start_advice(dataset, encoder, plan_analysis(Advice, budget=race.budget, serves=aim), runs_folder())
            st.query_params.update(budget=f"{found or race.budget:g}", serves=aim)
            st.rerun()


def _start_again(dataset: Dataset, encoder: EncoderSpec, race: Race, minutes: str) -> None:
    """Run a race once more in a time; a finished race of the same time stays until the new race has finished."""
    with show_user_errors():
        spec = plan_analysis(Advice, budget=float(minutes), serves=race.serves)
        restart_advice(dataset, encoder, spec, runs_folder())
        st.query_params["budget"] = minutes
        st.rerun()
