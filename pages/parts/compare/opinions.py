"""The verdict without labels on several runs: each against the frozen features, and two against each other."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import streamlit as st

from udml_core.base.errors import UserError, capitalized, listed
from udml_core.exploration.race_figures import AT_ONCE, BY_CLASSES, MEASURES, SAID, group_size_words, said_of_measured
from udml_core.exploration.race_words import race_judges_words
from udml_core.exploration.search_names import without_recipe
from udml_core.runs import Run
from udml_core.runs.analyses import analysis_at
from udml_core.runs.analyses.kinds.opinion import QUESTIONS, Opinions, Verdicts
from udml_core.runs.opinions import OF_RUN, QUESTION_WORDS, judge_words, obstacle
from udml_core.runs.search import FINAL, FROZEN
from udml_core.runs.search_opinion import run_against_run
from udml_core.runs.tasks import LIVE_STATES
from udml_core.work.jobs.concluding import ticket_of
from udml_core.work.jobs.raced import raced_together
from udml_core.work.jobs.verdicts import unraced_words

from ..draw.palette import signed
from ..runs.rivals import stand_beside
from ..shell.analyses import request_analysis
from ..shell.cached import dataset_of
from ..shell.opinions import stored_opinion, verdict_cells
from ..shell.race_judgments import search_name
from ..shell.race_verdict import joint_verdicts, race_verdict, raced_figures, said_of
from ..shell.run_hash import RUN_HASH
from ..shell.run_status import escaped, run_titles, search_title
from ..shell.verdict_bars import bars_of, show_bars
from .colors import swatch
from .own_judgments import show_own_judgments

if TYPE_CHECKING:
    from udml_core.exploration.race_measured import Measured

CLAUSES = {"better": ("is better than", "are better than"), "worse": ("is worse than", "are worse than"),
           "cannot tell": ("shows no clear difference to", "show no clear difference to")}
"""What a verdict says of one run and of several runs, before the words for the frozen features."""
Search = tuple[Run, str]
"""A run and its embedding: after training, or a refinement."""


def words_of(runs: Sequence[Run]) -> tuple[str, str]:
    """Return the words for the verdicts on runs that differ only in the seed; dashes without a second opinion."""
    verdicts = joint_verdicts(runs)
    return ("–", "–") if verdicts is None else verdict_cells(verdicts)


def frozen_words(verdicts: Mapping[str, Verdicts]) -> str:
    """State in Markdown which runs are better and which are worse than the frozen features, for each question.

    Args:
        verdicts: The verdicts by the run's name.
    """
    sentences = []
    for number, question in enumerate(QUESTION_WORDS):
        groups = {said: [f"**{escaped(name)}**" for name, of in verdicts.items() if of[number] == said]
                  for said in CLAUSES}
        parts = [f"{listed(names)} {CLAUSES[said][len(names) > 1]} the plain search"
                 for said, names in groups.items() if names]
        sentences.append(f"{question}: {'; '.join(parts)}.")
    return " ".join(sentences)


@dataclass(frozen=True)
class Pair:
    """What judges say of a run against another one.

    Attributes:
        verdicts: The verdicts.
        measured: What the judges measured together, of first results and of whole groups.
        judges: Who judged, in a sentence.
        note: What follows the verdicts, in Markdown; empty for nothing.
    """

    verdicts: Verdicts
    measured: tuple[Measured, Measured]
    judges: str
    note: str = ""

    def show(self, name: str, other: str) -> None:
        """Show the verdicts on two runs by their names, counted as on every page, as bars or else in words."""
        line = st.container()
        is_drawn = show_bars(bars_of(self.verdicts, self.measured), other)
        of = zip(MEASURES, self.verdicts, self.measured, strict=True)
        said = "" if is_drawn else "".join(f" {said_of_measured(*each)}." for each in of)
        line.markdown(f":material/balance: **{escaped(name)} against {escaped(other)}**{'.' * bool(said)}{said}",
                      help=escaped(self.judges))
        if self.note:
            st.caption(self.note)


def judged_pair(run: Run, rival: Run) -> Pair | None:
    """Return what judges say of a run against another one; None if neither a race nor judges compared the two."""
    race, opinions = raced_together(run, rival), None
    with suppress(UserError):  # the data set or an embedding is missing
        opinions = _against(run, rival)
    if race is None:
        return _unraced_pair(run, rival, opinions)
    if race.run in (run.id, rival.id):
        of = race.trained[rival.id if race.run == run.id else run.id]
        measured = (of.first.reversed, of.groups.reversed) if race.run == run.id else (of.first, of.groups)
        judges = f"Judged without labels by {escaped(race_judges_words(race))}"
    elif opinions is None:
        return None
    else:
        measured, judges = opinions.measured("final"), _judges_of(opinions)
    return Pair(Verdicts(*(each.said for each in measured)), measured, f"{judges}.")


def judged_searches(first: Search, second: Search) -> Pair | None:
    """Return what judges say of a search against another one; None if no judges can compare the two.

    Args:
        first: The judged search.
        second: The search that it is compared with.
    """
    (run, frame), (rival, reference) = first, second
    if frame == reference == FINAL:
        return judged_pair(run, rival)
    with suppress(UserError):  # the data set or an embedding is missing
        opinions = _against(run, rival, reference, frame, (ticket_of(run, frame), ticket_of(rival, reference)))
        if opinions is not None:
            return Pair(opinions.verdicts(FINAL), opinions.measured(FINAL), f"{_judges_of(opinions)}.")
    return None


def _unraced_pair(run: Run, rival: Run, opinions: Opinions | None) -> Pair | None:
    """Return what judges say of two runs that no race judged together; see `judged_pair`.

    Against the frozen features the verdict is the run's own, as every page says it.

    Args:
        run: The run.
        rival: The run that it is compared with.
        opinions: What judges say of the run against the other one; None without such judges.
    """
    own, said = stored_opinion(run), said_of(run) if _is_start_of(rival, run) else None
    note = escaped(unraced_words(run, rival))
    if said is not None and own is not None:
        return Pair(said.verdicts, own.measured("final"), f"{_judges_of(own)}.", note)
    if opinions is None:
        return None
    return Pair(opinions.verdicts("final"), opinions.measured("final"), f"{_judges_of(opinions)}.", note)


def _is_start_of(rival: Run, run: Run) -> bool:
    """Return whether a run is the frozen features that another run's own verdict compares with."""
    own, other = run.spec(), rival.spec()
    return other.method == FROZEN and (other.encoder, other.split) == (own.encoder, own.split)


def brief_names(runs: Sequence[Run]) -> list[str]:
    """Return the names of runs that are compared: their methods if these differ, else their titles without the data."""
    methods = [run.notes().name or search_title(run) for run in runs]
    return methods if len(set(methods)) == len(runs) else [
        title.replace(f" on {run.spec().dataset_title.split(',')[0]}", "", 1)
        for run, title in zip(runs, run_titles(runs).values(), strict=True)]


def _names_in_sentences(runs: Sequence[Run], names: Sequence[str]) -> tuple[str, str]:
    """Return the plain names of two runs of which the second is the plain search; else the given names."""
    if [run.spec().method == FROZEN for run in runs] == [False, True] and not any(run.notes().name for run in runs):
        return search_name(runs[0], FINAL), search_name(runs[1], FINAL)
    return names[0], names[1]


def _judges_of(opinions: Opinions) -> str:
    return f"Judged without labels by {listed([judge_words(judge) for judge in opinions.judges])}"


def show_opinions(named: Mapping[str, Sequence[Run]], positions: Sequence[Sequence[int]]) -> None:
    """Show the verdict on runs without labels, and what the judges measured.

    Args:
        named: The runs by name; runs that differ only in the seed share a name.
        positions: Positions of each name's runs among the compared runs, for their colors.
    """
    verdicts = {name: of for name, runs in named.items() if (of := joint_verdicts(runs)) is not None}
    # The frozen features come last: what is learned is compared with them, as everywhere.
    two = dict(sorted(named.items(), key=lambda of: of[1][0].spec().method == FROZEN)) if is_pair(named) else {}
    pair = judged_pair(*(run for run, in two.values())) if two else None
    brief = brief_names([run for run, in two.values()])
    beside = _beside_best(named)
    first, second = _names_in_sentences([run for run, in two.values()], brief) if two else ("", "")
    if pair is not None:
        (replace(pair, note="") if beside else pair).show(capitalized(first), second)
    elif len(named) == 2:
        _offer_pair([run for runs in named.values() for run in runs])
    for words in beside:
        st.markdown(f":material/trophy: {words}")
    if two:
        show_own_judgments([runs[0] for runs in two.values()][::-1], [second, without_recipe(first)],
                           None if pair is None else pair.verdicts)
    if verdicts:
        words = frozen_words(verdicts)
        if pair is None:
            note = "" if beside else escaped(unraced_words(*(run for runs in named.values() for run in runs)))
            st.markdown(f":material/balance: {words} {note}".rstrip())
        with st.expander("What the judges measured", expanded=len(named) > 2):  # of two, it repeats the verdicts
            st.html(opinions_html(named, positions))
            st.caption(f"{'The largest gain in the whole group comes first. ' * (len(named) > 2)}"
                       "Difference to the plain search: how similar a query and the images found look to a judge, "
                       f"from −1 to 1, with its interval (95 %, {AT_ONCE}). First result: the nearest image. "
                       f"{_group_words(named)} Judges that count for three quarters must agree. No labels are "
                       f"used. {BY_CLASSES}")
            for name, runs in named.items():
                if pair is None and (words := race_verdict(runs[0], "")):
                    st.caption(f"**{escaped(name)}** {words}")
    unknown = [name for name in named if name not in verdicts and named[name][0].spec().method != FROZEN]
    if unknown and pair is None:
        st.info(f"Without a verdict: {', '.join(map(escaped, unknown))}. These runs have neither labels nor a second "
                "opinion. Open the run on the page **Runs** to compute it.", icon=":material/lightbulb:")


def _beside_best(named: Mapping[str, Sequence[Run]]) -> list[str]:
    """Return for each training that no race judged which is better, it or the search in use, else the advised search.

    Returns:
        Sentences in Markdown.
    """
    sentences = []
    for name, runs in named.items():
        said = said_of(runs[0]) if len(runs) == 1 and runs[0].spec().method != FROZEN else None
        if said is not None and not said.is_raced and (stand := stand_beside(runs[0])) is not None:
            sentences.append(f"**{escaped(name)}. {stand.head}**: {escaped(stand.why)}.")
    return sentences


def _group_words(named: Mapping[str, Sequence[Run]]) -> str:
    """Say how many results a whole group has."""
    known = (opinions.group for runs in named.values() for run in runs if (opinions := stored_opinion(run)))
    return group_size_words(next(known, 0)) or "Whole group: as many images as a typical group has."


def _offer_pair(runs: Sequence[Run]) -> None:
    """Offer to compute what the comparison of two runs needs: the second opinion of the run that lacks it."""
    lacking = [run for run in runs if stored_opinion(run) is None and not run.is_example and not obstacle(run)]
    if not lacking:
        return
    run = lacking[0]
    analysis = analysis_at(run, OF_RUN)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if analysis.folder.exists() and analysis.status().state in LIVE_STATES:
            st.caption("These two are not compared yet. The judges are at work; load the page again in a minute.")
        else:
            st.caption("These two are not compared yet.")
            request_analysis(run, OF_RUN, "Compare now", "compare-now",
                             "Encoders that took no part in either run compare their results, in the background.")


def is_pair(named: Mapping[str, Sequence[Run]]) -> bool:
    """Return whether two runs are compared, none of them with other seeds."""
    return len(named) == 2 and all(len(runs) == 1 for runs in named.values())


@st.cache_resource(max_entries=32, show_spinner="Comparing the two searches …", hash_funcs=RUN_HASH)
def _against(run: Run, rival: Run, frame: str = FINAL, own: str = FINAL,
             tickets: tuple[float, ...] = ()) -> Opinions | None:  # noqa: ARG001 (a refinement is computed again)
    return run_against_run(run, rival, dataset_of(run), frame, own)


def opinions_html(named: Mapping[str, Sequence[Run]], positions: Sequence[Sequence[int]]) -> str:
    """Return the verdicts and the measured differences as an HTML table, a row for each name.

    The largest mean gain in whole groups comes first.
    """
    rows = []
    in_order = sorted(zip(named.items(), positions, strict=True), key=lambda row: -_gain(row[0][1]))
    for (name, runs), members in in_order:
        verdicts = joint_verdicts(runs)
        if verdicts is not None:
            cells = "".join(f"<td><b>{SAID[verdict]}</b>{_measured(runs, question)}</td>"
                            for question, verdict in zip(QUESTIONS, verdicts, strict=True))
            lines = "".join(swatch(number, run.spec().method == FROZEN)
                            for number, run in zip(members, runs, strict=True))
            rows.append(f"<tr><th scope='row'>{lines}{html.escape(name)}</th>{cells}</tr>")
    heads = "".join(f"<th scope='col'>{question}</th>" for question in QUESTION_WORDS)
    return ("<div class='compare-table' tabindex='0' role='region' aria-label='Verdicts without labels'><table><thead>"
            f"<tr><th scope='col'>Run</th>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>")


def _gain(runs: Sequence[Run]) -> float:
    """Return the mean gain of runs in whole groups over the plain search; 0 of the plain search itself."""
    gains = [of.difference for _, of in _differences(runs, "whole group")]
    return sum(gains) / len(gains) if gains else 0.0


def _measured(runs: Sequence[Run], question: str) -> str:
    """Return the intervals of all judges together behind a verdict in HTML, a line for each run."""
    return "".join(f"<small>{html.escape(judges)}</small>{signed(of.difference, 3)} ({signed(of.wide.low, 3)} to "
                   f"{signed(of.wide.high, 3)})" for judges, of in _differences(runs, question))


def _differences(runs: Sequence[Run], question: str) -> list[tuple[str, Measured]]:
    """Return the judges of runs in words, and what they measured together; without runs that nothing judged."""
    lines: list[tuple[str, Measured]] = []
    number = list(QUESTIONS).index(question)
    for run in runs:
        opinions = stored_opinion(run)
        if (raced := raced_figures(run)) is not None:
            lines.append((raced.judges, raced.measured[number]))
        elif opinions is not None:
            lines.append((listed([judge_words(judge) for judge in opinions.judges]),
                          opinions.measured("final")[number]))
    return lines
