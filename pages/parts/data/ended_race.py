"""A race that ended: its advice, what to do with its winner, and how to run it again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from udml_core.base.errors import capitalized, counted
from udml_core.data.dataset import Dataset
from udml_core.data.encoders import EncoderSpec
from udml_core.exploration.plain_names import plain_line
from udml_core.exploration.race import Outcome, Race
from udml_core.exploration.race_advice import alternative_of, best_otherwise, both_aims_words, figure_line
from udml_core.exploration.race_certainty import EYES
from udml_core.exploration.race_conclusion import Conclusion
from udml_core.exploration.race_elsewhere import Elsewhere
from udml_core.exploration.race_figures import (
    AT_ONCE,
    BY_CLASSES,
    COUNTED,
    MEASURES,
    OTHER,
    by_class_words,
    chain_words,
    group_size_words,
    measured_words,
    scope_words,
    setup_words,
)
from udml_core.exploration.race_gaps import took_words
from udml_core.exploration.race_measured import Serves
from udml_core.exploration.race_words import caution_words, judge_lines, needs_eyes, outcome_words
from udml_core.exploration.search_names import other_search, plain_name
from udml_core.runs.analyses import Analysis
from udml_core.work import jobs
from udml_core.work.jobs.answering import relation_to
from udml_core.work.jobs.concluding import JUDGED, conclusion_of, results_of
from udml_core.work.jobs.raced import elsewhere_of, finished_race, race_of

from ..runs.newer import offer_newer
from ..shell.race_judgments import outcome_judgments, recipe_of
from ..shell.race_line import end_of
from ..shell.run_status import ICONS, escaped
from ..shell.user_errors import show_user_errors
from ..shell.verdict_bars import show_verdict_bars
from .answer import own_line
from .computed import choose_backbone
from .own_judgments import show_own_judgments
from .race import explained, show_race
from .race_again import race_for_other_aim, show_again, show_chosen_for
from .race_examples import show_examples
from .race_next import is_kept, relation_words, show_kept, show_next, use_elsewhere, use_plain
from .using import (
    SEARCH,
    USE,
    chosen_search,
    show_awaited,
    show_race_button,
    use_button,
)

ICON = ":material/trophy:"
KEEP = "Keep the plain search"
"""What a headline says where it names no better search."""


def show_ended(analysis: Analysis, key: str, dataset: Dataset, encoder: EncoderSpec, aim: Serves,
               awaited: Analysis | None = None) -> None:
    """Show a race that ended, and what to do with its winner.

    Args:
        analysis: The race.
        key: Key of its chart.
        dataset: The data set.
        encoder: The encoder of the frozen features.
        aim: What the user looks for.
        awaited: The refinement of a search that was chosen, while it is computed.
    """
    status, race = analysis.status(), finished_race(analysis).serving(aim)
    is_done = analysis.is_done() or analysis.has_earlier()
    if status.state != "done":
        _show_stopped(analysis)
    other = elsewhere_of(analysis, aim) if is_done else None
    for_other_aim = None if race.best is not None else race_for_other_aim(dataset, encoder, race, analysis)
    of, elsewhere = conclusion_of(analysis, dataset, for_other_aim, aim), None if other is None else other[0]
    again = partial(show_again, dataset, encoder, race) if is_done else None
    own = chosen_search(dataset.name)
    relation, part = ("unjudged", None) if own is None else relation_to(of, race, own[0].id, recipe_of(*own))
    with st.container(border=True, key="advice-verdict"):
        asks_again = own is not None and part is None and of.action != "again"
        if own is not None and (relation != "same" or not is_kept(of, relation, part)):
            with st.container(horizontal=True, vertical_alignment="center", gap="small", key="advice-choice"):
                st.markdown(f"{own_line(*own)} {relation_words(race, relation, part)}", width="content")
                if asks_again and again is not None:
                    again()
        _show_headline(race, of, own is None or relation == "same", own is not None and is_kept(of, relation, part))
        is_drawn = of.use is not None and show_verdict_bars(of.race, of.use)
        counted = "" if is_drawn else of.counted
        if words := " ".join(of.once(of.headline, counted, of.sure, of.beside, of.decider, of.dissent)[1:]):
            st.markdown(escaped(words.replace(EYES, "").strip()))
        _show_both_aims(of, is_drawn, part)
        if of.use is not None and of.use == race.best and (caution := caution_words(race)):
            st.caption(f":material/info: {escaped(caution)}")
        if awaited is not None:
            show_awaited(awaited)
        elif own is not None and is_kept(of, relation, part):
            show_kept(race, of, own, relation, part, elsewhere)
        else:
            show_next(race, of, own, relation, elsewhere, again)
        if of.use is not None:
            show_examples(of.race, of.use, dataset)
        offer_newer(dataset.name, "advice-newer", can_keep=own is not None and relation == "same")
        simpler = alternative_of(of.race) if of.equals else None
        if simpler is not None:
            _show_equals(of, simpler, is_own=part is not None and part.setup == simpler.setup)
        beside = of.after(of.equals) if of.equals and simpler is None else ""
        if said := " ".join(filter(None, (escaped(beside), took_words(race) if is_done else ""))):
            st.caption(f":material/timer: {said}")
        if is_done:
            show_chosen_for(dataset, encoder, race)
        show_own_judgments(of, dataset, part)
        with st.expander("Details", icon=":material/list:"):
            _show_actions(race, of, other, None if of.action == "again" or asks_again else again, encoder)
            _show_details(race, of, elsewhere)
            _show_others(race, of)
            show_race(race, f"race-{key}", is_live=False)


def _show_stopped(analysis: Analysis) -> None:
    """Say that a race ended before its time, and what can be done; an earlier race with the same choices stays."""
    state, again = analysis.status(), analysis.has_earlier()
    with st.container(horizontal=True, vertical_alignment="center"):
        race = race_of(analysis)
        kept = "; its finished candidates stay" if race.judged else " before it judged a candidate"
        st.warning(f"{ICONS[state.state]} The {'new ' * again}race {end_of(state.state)}{kept}. "
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


def _show_headline(race: Race, of: Conclusion, is_only: bool, is_own_kept: bool) -> None:
    """Show what to use, and what its names mean.

    The sign is a green trophy only if a candidate surely wins and changes enough, or judgments prefer it.

    Args:
        race: The race.
        of: Its conclusion.
        is_only: Whether the card names no other search, so that the plain name is enough: its steps follow below.
        is_own_kept: Whether the user can keep another search, so that the plain search need not be kept.
    """
    is_sure = of.use is not None and (of.is_judged or of.use != race.best or not needs_eyes(race))
    sign = f":green[{ICON}]" if is_sure else ":material/balance:" if race.is_judged else ":material/help:"
    headline = (of.plain_headline if is_only and of.use is not None else of.headline).removesuffix(".")
    if is_own_kept:
        headline = capitalized(headline.removeprefix(f"{KEEP}: ").removesuffix(f": {KEEP.lower()}"))
    st.markdown(f"#### {sign} {escaped(headline)}")
    if of.use is not None:
        scope = scope_words(of.use.setup)
        st.caption(escaped(" · ".join([plain_line(of.race, of.use.setup), f"{scope[:1].upper()}{scope[1:]}."])),
                   help=explained(of.race, of.use.setup))


def _show_equals(of: Conclusion, simpler: Outcome, is_own: bool) -> None:
    """Show how many candidates do about as well as the advice, and the button that searches with a simpler one.

    Args:
        of: The conclusion.
        simpler: The simpler candidate.
        is_own: Whether the user searches with it already, so that there is no button.
    """
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="advice-equals"):
        name = other_search(of.race, simpler.setup, (of.use or simpler).setup)
        words, equals = escaped(name), of.after(of.equals)
        st.markdown(escaped(equals.replace(name, "your search") if is_own else equals), width="stretch")
        if is_own:
            return
        kept = "the plain search" if of.use is None else plain_name(of.use.setup, of.race.start)
        use_button("Use it instead", SEARCH, of.race, simpler, "retrieval",
                   f"Changes your search to {words}, in place of {escaped(kept)}. {USE}", kind="tertiary",
                   key="advice-simpler")


def _show_both_aims(of: Conclusion, is_drawn: bool, own: Outcome | None) -> None:
    """Show what the race found in the other aim, unless it is drawn.

    Judgments of the other aim follow, which decide nothing here.
    """
    best = best_otherwise(of.race)
    words = "" if is_drawn or (own is not None and own == best) else of.after(both_aims_words(of.race, of.use))
    asked = JUDGED[OTHER[of.race.serves]]
    judged = [said for outcome in [of.candidate, *([best] * (best != of.candidate))] if outcome is not None
              if (said := outcome_judgments(of.race, outcome, [asked]))]
    if words:
        st.caption(escaped(words))
    if judged:
        st.caption(f":material/thumbs_up_down: {' '.join(judged)}")


def _show_details(race: Race, of: Conclusion, elsewhere: Elsewhere | None) -> None:
    """Show what judgments say, the figures of the race, and explanations."""
    if judged := _judgments(of, race):
        st.markdown(f":material/thumbs_up_down: {judged}")
    named = race.best or next(iter(race.judged), None)
    line, is_groups = figure_line(race, elsewhere), race.serves == "groups"
    counts_groups = named is not None and named.against_start is not None and by_class_words(named.against_start.groups)
    told = [escaped(of.after(sentence)) for sentence in of.details]
    sentences = [*told, *([BY_CLASSES] if line and (is_groups or counts_groups) else [])]
    st.markdown("\n".join(f"- {sentence}" for sentence in sentences))
    if line:
        st.caption(escaped(line),
                   help=f"{COUNTED[race.serves]} {group_size_words(race.group) if is_groups else ''}".rstrip())
    if named is not None:
        if lines := judge_lines(race, named):
            together = "" if of.decider else "; only all of them together decide"
            st.markdown(f"What each judge alone says of {escaped(setup_words(race, named.setup))}{together}:\n"
                        + "\n".join(f"- {escaped(line)}" for line in lines))
        if of.use is None:  # else it stands below the headline
            st.caption(f"{escaped(plain_line(race, named.setup))}.", help=explained(race, named.setup))


def _judgments(of: Conclusion, race: Race) -> str:
    """Return what blind judgments say of the advised search, or of the largest gain, in Markdown; empty without any."""
    return "" if of.candidate is None else outcome_judgments(of.race, of.candidate, [results_of(race)])


def _show_actions(race: Race, of: Conclusion, other: tuple[Elsewhere, Analysis] | None,
                  again: Callable[[], None] | None, encoder: EncoderSpec) -> None:
    """Show the buttons that keep the plain search, use another race's search, show that race, run the race again, or
    begin with another network.
    """
    elsewhere = None if other is None else other[0]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if of.use is not None and of.action != "search" and race.best is None:
            use_plain(race, "secondary")
        if elsewhere is not None and not elsewhere.wins(race):
            use_elsewhere(elsewhere, "secondary")
        if other is not None:
            when = "later" if other[0].is_later else "earlier"
            show_race_button(f"Show the {when} race", other[1].spec(), "advice-other-race")
        if again is not None:
            again()
        choose_backbone(encoder)


def _show_others(race: Race, of: Conclusion) -> None:
    """Show the other candidates in a list with their figures, each with a button that searches with it."""
    others = [outcome for outcome in race.judged if outcome != (of.use or race.best)]
    if not others:
        return
    with st.expander("Use another candidate", icon=":material/list:"):
        st.caption(f"The largest gain in {MEASURES[race.serves]} first; the intervals hold {AT_ONCE}.")
        for number, outcome in enumerate(others):
            with st.container(horizontal=True, vertical_alignment="center", key=f"advice-other-{number}"):
                words = escaped(chain_words(race, outcome.setup)), escaped(_gain_words(race, outcome))
                st.markdown(f"{words[0]}  \n:small[{words[1]}]", width="stretch")
                use_button("Use it", SEARCH, race, outcome, "retrieval",
                           "Search with it.", key=f"advice-use-{number}")


def _gain_words(race: Race, outcome: Outcome) -> str:
    """Return the verdict on a candidate and its figures in the served measure."""
    return measured_words(race.gain(outcome), MEASURES[race.serves])
