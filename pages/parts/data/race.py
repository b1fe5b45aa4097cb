"""The race for the best search as a chart, and one sentence for each candidate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from udml_core.base.errors import duration
from udml_core.exploration.plain_names import PLAIN, new_words, plain_words
from udml_core.exploration.race import FROZEN, Outcome, Race, Setup
from udml_core.exploration.race_advice import star_words
from udml_core.exploration.race_figures import (
    AT_ONCE,
    MEASURES,
    OTHER,
    UNTOLD,
    chain_words,
    count_cell,
    figure_words,
    gain_words,
    said_word,
    scope_words,
)
from udml_core.exploration.race_measured import Measured
from udml_core.exploration.race_words import left_out_lines, outcome_words, race_judges_words
from udml_core.methods import find_method
from udml_core.numerics.refinement import STEPS

from ..draw.figures import BREAK, GRAY, draw, italic, titled
from ..draw.palette import BEFORE, HIT, MISS
from ..draw.tables import wrapped_table
from ..shell.run_status import escaped

START = "Plain search"
MARKS = {"the advice": (HIT, "star"), "better": (HIT, "circle"), "no clear difference": (GRAY, "diamond-open"),
         UNTOLD: (GRAY, "x-open"), "worse": (MISS, "x")}
"""Color and sign of each result, so that no result is marked by color alone."""
ROW, LINE, GAP, NOTE, FRAME = 34, 16, 12, 38, 150
"""Heights in pixels: of a row of the chart, at least, a line of its label, the space between labels, a note above a
mark, and everything around the rows."""
NEXT_LINE = "\n  "
"""What begins another line of a list's item in Markdown, after two spaces."""
LETTERS, SHORT = 32, 24
"""Letters in a line of a label and of a note, so that a phone has room for the chart."""


def show_race(race: Race, key: str, is_live: bool = True) -> None:
    """Show the candidates that were judged so far: a chart, a sentence for each, and what was not tried.

    Args:
        race: The race.
        key: Key of the chart.
        is_live: Whether it runs; the sentences of a race that ended are behind a closed line.
    """
    judged, phrases = [outcome for outcome in race.outcomes if outcome.against_start is not None], new_words(race)
    if judged:
        _draw_race(race, judged, key, is_live)
        st.caption("Each line is a candidate. Right of 0, it finds images that look more similar than the plain "
                   f"search finds, as seen by {escaped(race_judges_words(race))}. "
                   f"A bar that crosses 0 may be chance. {escaped(kept_words(race, is_live))}",
                   help="A mark is the mean over all images, of a similarity from −1 to 1; its bar is the 95 % "
                        f"interval, which holds {AT_ONCE}.")
    with st.container(gap="xxsmall") if is_live or not judged else st.expander(
            "Each candidate in a sentence", icon=":material/format_list_bulleted:"):
        for outcome in race.outcomes:
            if outcome.state != "not tried":
                phrase = escaped(phrases.get(outcome.setup, ""))
                st.markdown(f"- {escaped(outcome_words(outcome, race))}{phrase and f'  {NEXT_LINE}:gray[{phrase}]'}",
                            help=explained(race, outcome.setup))
    left_out = [outcome for outcome in race.outcomes if outcome.against_start is None]
    meant = {name: words for outcome in left_out for name, words in plain_words(race, outcome.setup).items()}
    for line in left_out_lines(race):
        st.caption(escaped(line), help="  \n".join(f"**{escaped(name)}**: {escaped(words)}" for name, words in
                                                   meant.items()))
    if judged:
        with st.expander("Candidates as a table", icon=":material/table:"):
            wrapped_table(race_table(race))


def kept_words(race: Race, is_live: bool = False) -> str:
    """Say on which candidates later candidates build, which the table marks in the same words."""
    of = MEASURES[race.chosen_for or race.serves]
    if not any(outcome.kept for outcome in race.judged):
        beat = [outcome for outcome in race.judged if race.verdict(outcome) == "better"]
        if not beat:
            return f"No candidate {'is kept yet' if is_live else 'was kept'}: none beat the plain search in {of}."
        return "The next candidates add a step to what beat the plain search." if is_live else (
            "The race ended before a later candidate could add a step to what beat the plain search.")
    return (f"A candidate that beat the best before it in {of} is kept: later candidates add a step to it. This only "
            "chooses what is tried; the verdict is stricter.")


def explained(race: Race, setup: Setup) -> str:
    """Return what the words of a search mean, plainly and as papers say it, for the text behind a "?", in Markdown."""
    own = find_method(setup.method).card
    terms = {START: f"what {race.titles.get(setup.backbone, setup.backbone)}, a network that was trained "
                                "on other images, says of each image. Nothing is trained on yours."}
    if setup.method != FROZEN:
        terms[own.title] = own.summary
    steps = [STEPS[step.name] for step in setup.parsed.steps]
    terms |= {step.title: f"{step.idea} {step.technique}" for step in steps}
    if scope := scope_words(setup):
        terms["New images"] = f"{scope}."
    return "  \n".join(f"**{escaped(name)}**: {escaped(words[:1].lower() + words[1:])}" for name, words in
                       terms.items())


def result_of(outcome: Outcome, race: Race, is_live: bool = False) -> str:
    """Return the result of a judged candidate against the frozen features, as the legend names it.

    A race that runs has no advice yet.
    """
    if outcome == race.best and not is_live:
        return "the advice"
    return said_word(race.gain(outcome))


def _draw_race(race: Race, judged: Sequence[Outcome], key: str, is_live: bool) -> None:
    chains = {outcome.setup: chain_words(race, outcome.setup).replace(", then ", " + ") for outcome in judged}
    points = {chains[outcome.setup]: race.gain(outcome).wide for outcome in judged}
    phrases = {START: PLAIN[FROZEN]} | {chains[setup]: words for setup, words in new_words(race).items()}
    labels = {name: [*wrap(name, LETTERS), *(italic(line) for line in wrap(phrases[name], LETTERS))]
              for name in (START, *points)}
    starred = None if is_live else race.best
    rows = _rows(labels, chains[starred.setup] if starred is not None and star_words(race) else "")
    figure = go.Figure()
    figure.add_scatter(x=[0.0], y=[rows[START]], mode="markers", name=START.lower(), showlegend=False,
                       marker={"color": BEFORE, "size": 10, "symbol": "square"})
    for result, (color, symbol) in MARKS.items():
        names = [chains[outcome.setup] for outcome in judged if result_of(outcome, race, is_live) == result]
        if names:
            _add_points(figure, result, {rows[name]: points[name] for name in names}, color, symbol)
    figure.add_vline(x=0, line={"color": BEFORE, "width": 1})
    if not is_live:
        _note_star(figure, race, rows, chains)
    end = rows[""]
    titled(figure, f"Gain in {MEASURES[race.serves]}", FRAME + end,
           legend={"title": "against the plain search: ", "orientation": "h", "yref": "container", "y": 0,
                   "yanchor": "bottom", "x": 0})
    names = [START, *points]
    figure.update_yaxes(range=[end, 0], automargin=True, tickvals=[rows[name] for name in names], zeroline=False,
                        ticktext=[BREAK.join(labels[name]) for name in names])
    figure.update_xaxes(title="gain in similarity, as judges see it", tickformat=".3~g", zeroline=False)
    draw(figure, key, f"Gain of {len(judged)} candidates over the plain search: " + "; ".join(
        f"{name} {figure_words(point.difference, '+')}" for name, point in points.items()) + ".")


def _rows(labels: Mapping[str, Sequence[str]], noted: str) -> dict[str, int]:
    """Return the middle of each row in pixels from the top, by its name, and under no name the end of the last row.

    Args:
        labels: The lines of each row's label.
        noted: The name of the row above whose mark a note stands; empty for none.
    """
    rows, end = dict[str, int](), 0
    for name, lines in labels.items():
        height = max(ROW, LINE * len(lines) + GAP, 2 * NOTE if name == noted else 0)
        rows[name], end = end + height // 2, end + height
    return rows | {"": end}


def _add_points(figure: go.Figure, result: str, points: Mapping[int, Measured], color: str, symbol: str) -> None:
    """Draw the gains with a result, by their rows, with their intervals."""
    shown = list(points.values())
    figure.add_scatter(
        x=[point.difference for point in shown], y=list(points), mode="markers", name=result,
        marker={"color": color, "size": 14 if symbol == "star" else 10, "symbol": symbol},
        hovertemplate="%{x:.3f}",
        error_x={"type": "data", "symmetric": False, "color": color, "thickness": 1.5,
                 "array": [point.high - point.difference for point in shown],
                 "arrayminus": [point.difference - point.low for point in shown]})


def _note_star(figure: go.Figure, race: Race, rows: Mapping[str, int], chains: Mapping[Setup, str]) -> None:
    """Write above the star why it is not the largest gain, if it is not."""
    if race.best is not None and (why := star_words(race)):
        figure.add_annotation(x=race.gain(race.best).difference, y=rows[chains[race.best.setup]], showarrow=False,
                              text=BREAK.join(wrap(why, SHORT)), yshift=6, yanchor="bottom", font={"size": 11})


def race_table(race: Race) -> pd.DataFrame:
    """Return the judged candidates with both measures, in comparison with the frozen features.

    Returns:
        A row for each candidate, by its name; of each measure the verdict, the count, and the gain with its interval.
    """
    rows = {}
    for outcome in race.outcomes:
        if outcome.against_start is not None:
            row = dict[str, str]()
            for name in (race.serves, OTHER[race.serves]):
                gain = outcome.against_start.served(name)
                title = MEASURES[name].capitalize()
                row |= {f"{title}: verdict": said_word(gain),
                        f"{title}: of 100 searches": count_cell(gain),
                        f"{title}: gain, 95 % interval": gain_words(gain)}
            rows[chain_words(race, outcome.setup)] = row | {
                "Kept for the next steps": "yes" if outcome.kept else "no", "Time": duration(outcome.seconds)}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("Candidate")
