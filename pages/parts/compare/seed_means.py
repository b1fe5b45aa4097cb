"""Measures before and after training, averaged over seeds."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from udml_core.base.arrays import Array
from udml_core.base.errors import UserError, listed
from udml_core.exploration.comparison import mean_interval
from udml_core.exploration.paper_tables import FEWEST, Cell, PaperTable, ties
from udml_core.numerics.measures import MAIN_MEASURES
from udml_core.runs import Run
from udml_core.runs.opinions import JUDGED, QUESTION_WORDS, TRUST, agreement
from udml_core.runs.paper_table import table_of_runs
from udml_core.runs.run_comparison import Spread, grouped_by_seed, settings_of, share_images, spread
from udml_core.runs.search import features_words
from udml_core.runs.verdict import MAIN_MEASURE, has_labels, standing

from ..draw.downloads import share, table_downloads
from ..draw.palette import percent, points
from ..shell.cached import load_retrieval, progress_bar
from ..shell.pools import images_of
from ..shell.race_verdict import joint_verdicts, run_verdicts
from ..shell.run_groups import group_column, group_of
from ..shell.run_status import escaped, group_titles, run_titles
from .colors import swatch, swatch_of
from .opinions import is_pair, show_opinions, words_of
from .own_judgments import show_own_judgments
from .settings import dimension_of, facts, learns_from
from .verdict import Interval, unequal_words, verdict_words

GAIN, OVER_FROZEN, OVER_PCA, TO_BEST = "change", "against frozen", "against PCA", "against best"
COLUMNS, MORE = ("after", OVER_FROZEN, OVER_PCA), ("before", GAIN, TO_BEST)
"""Columns of each measure: in the table, which must fit beside the sidebar of a small screen, and in a second one."""
TITLES = {measure.key: measure.name for measure in MAIN_MEASURES}
FACTS = "Facts"
"""Column with a run's dimension and labels, which the page writes below its name."""
MOST_RANKED = 10_000
"""Test images that are searched without being asked: the first part and the interval search with every one."""
RESAMPLED = ("95 % interval: of 2,000 draws of as many test images with replacement, the middle 95 % have such a gap "
             "between the two runs (paired bootstrap). What another seed would change is not part of it.")


def repetitions(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Return the runs by name; runs that differ only in the seed share a name."""
    groups = grouped_by_seed(runs)
    return dict(zip(group_titles(groups), groups, strict=True))


def measure_table(runs: Sequence[Run]) -> pd.DataFrame:
    """Return a row for each group of runs that differ only in the seed.

    Columns: the mean before and after training, with the sample's standard deviation over the seeds, and the mean
    differences of the measure after training to before, frozen features, PCA and the best row of the group. Stars and
    best rows compare only rows with the same data set, split and backbone; a column names them if they differ.
    """
    named = repetitions(runs)
    heading, groups = group_column([members[0] for members in named.values()])
    are_judged = any(joint_verdicts(members) is not None for members in named.values())
    rows: list[dict[str, Any]] = []
    for (name, members), group in zip(named.items(), groups, strict=True):
        row: dict[str, Any] = {"": "", "Run": name, FACTS: facts(members[0]), **({heading: group} if heading else {})}
        if are_judged:
            row |= dict(zip(QUESTION_WORDS, words_of(members), strict=True))
        row["Seeds"] = len(members)
        for measure, title in TITLES.items():
            of = [standing(run.evaluation(), measure) for run in members]
            rivals = [others for others in named.values() if group_of(others[0]) == group_of(members[0])]
            after = _mean_after(members, measure)
            best = max((mean for others in rivals if (mean := _mean_after(others, measure)) is not None), default=None)
            row |= {f"{title} before": spread_text(spread([value.before for value in of])),
                    f"{title} after": spread_text(spread([value.after for value in of])),
                    f"{title} {GAIN}": difference_text(spread([value.gain for value in of])),
                    f"{title} {OVER_FROZEN}": difference_text(spread([value.over_frozen for value in of])),
                    f"{title} {OVER_PCA}": difference_text(spread([value.over_pca for value in of])),
                    f"{title} {TO_BEST}": points(None if after is None or best is None else after - best)}
        rows.append(row)
    for number in _shared_first(list(named.values())):
        rows[number][""] = "★"
    return pd.DataFrame(rows)


def _shared_first(groups: Sequence[Sequence[Run]]) -> list[int]:
    """Return the positions of the rows with the highest MAP@R among rivals, and within one standard deviation of it."""
    cells: dict[object, dict[str, Cell]] = {}
    for number, members in enumerate(groups):
        of = spread([standing(run.evaluation(), MAIN_MEASURE).after for run in members])
        if of is not None:
            cells.setdefault(group_of(members[0]), {})[str(number)] = Cell(round(of.mean, 1), of.deviation or 0.0)
    return [int(number) for rivals in cells.values() if len(rivals) > 1 for number in ties(rivals)]


def _mean_after(members: Sequence[Run], measure: str) -> float | None:
    """Return the mean over the seeds after training, as it is shown; None without a measure."""
    mean = spread([standing(run.evaluation(), measure).after for run in members])
    return None if mean is None else round(mean.mean, 1)


def gap_interval(first: Sequence[Run], second: Sequence[Run]) -> Interval | None:
    """Return the 95 % interval of the difference of MAP@R over resampled queries, in percentage points.

    Args:
        first: Runs that differ only in the seed; a query's value is its mean over them.
        second: The same of the other row of the table.

    Returns:
        None if the runs do not have the same test images with classes, or more than `MOST_RANKED`, or if their images
        are missing: the measures do not need them.
    """
    try:
        opened = [load_retrieval(run) for run in (*first, *second)]
    except UserError:
        return None
    test = opened[0].split.test
    if opened[0].dataset.labels is None or len(test) > MOST_RANKED or not all(
            np.array_equal(test, retrieval.split.test) for retrieval in opened):
        return None
    with progress_bar() as report:
        scores = [retrieval.precisions(report) for retrieval in opened]
    gaps = np.mean(scores[:len(first)], axis=0) - np.mean(scores[len(first):], axis=0)
    return _interval(100 * gaps)


@st.cache_data(max_entries=64, show_spinner=False)
def _interval(gaps: Array) -> Interval | None:
    return mean_interval(gaps)


def equal_runs(runs: Sequence[Run]) -> list[list[str]]:
    """Return the names of the runs in Markdown, grouped by equal settings, the seed included."""
    groups: list[tuple[dict[str, Any], list[str]]] = []
    for run, name in zip(runs, run_titles(runs).values(), strict=True):
        settings = settings_of(run)
        names = next((names for known, names in groups if known == settings), None)
        if names is None:
            groups.append((settings, names := []))
        names.append(f"**{escaped(name)}**")
    return [names for _, names in groups]


def spread_text(value: Spread | None) -> str:
    """Return a mean in percent, with the standard deviation if there are several seeds."""
    if value is None:
        return percent(None)
    return percent(value.mean) if value.deviation is None else f"{value.mean:.1f} ± {value.deviation:.1f} %"


def difference_text(value: Spread | None) -> str:
    """Return a mean difference in percentage points with its sign."""
    return points(None if value is None else value.mean)


def _unequal(runs: Sequence[Run]) -> str:
    supervision = [words for run in runs if (words := learns_from(run)) is not None]
    return unequal_words(supervision, [dimension for run in runs if (dimension := dimension_of(run)) is not None])


def show_measures(runs: Sequence[Run], is_quick: bool = False) -> None:
    """Show the verdict, and the measures of all runs; a star marks the highest MAP@R and what is level with it.

    Runs without labels have the verdict of their second opinions instead.

    Args:
        runs: Finished runs.
        is_quick: Whether the interval of the gap is left out, which searches with every test image.
    """
    named, equal = repetitions(runs), equal_runs(runs)
    positions = [[runs.index(run) for run in members] for members in named.values()]
    if any(has_labels(run.evaluation()) for run in runs):
        _show_labeled(runs, named, equal, positions, is_quick)
    else:
        show_opinions(named, positions)
    if repeated := [names for names in equal if len(names) > 1]:
        st.info(" ".join(f"{' and '.join(names)} have equal settings, also the seed: they repeat one training."
                         for names in repeated)
                + " Differences between repetitions come from the machine or from other versions of its software.",
                icon=":material/content_copy:")
    if not share_images(runs):
        st.warning("These runs search different test images, so their measures cannot be compared with each other.",
                   icon=":material/warning:")


def _show_labeled(runs: Sequence[Run], named: Mapping[str, Sequence[Run]], equal: Sequence[Sequence[str]],
                  positions: Sequence[Sequence[int]], is_quick: bool) -> None:
    """Show the verdict from labels and the table of measures."""
    table, raw = measure_table(runs), features_words(*(run.spec() for run in runs))
    if share_images(runs) and len(equal) > 1:
        judged, nearest = ({name: [standing(run.evaluation(), measure) for run in members]
                            for name, members in named.items()} for measure in TITLES)
        words, certainty = verdict_words(judged, nearest, lambda best, second: (
            None if is_quick else gap_interval(named[best], named[second])), raw)
        if words:
            st.markdown(f":material/emoji_events: {words}")
            if cautions := " ".join(filter(None, [_unequal(runs), certainty])):
                st.caption(cautions, help=RESAMPLED)
    if is_pair(named) and share_images(runs):
        show_own_judgments([members[0] for members in named.values()], list(named), None)
    st.html(table_html(table, positions, COLUMNS, runs, raw))
    if opposed := _opposed(named):
        st.markdown(f"Labels and judges differ on {listed([escaped(name) for name in opposed])}. {TRUST}")
    seeds = " Runs that differ only in the seed share a row: mean ± standard deviation." if any(table["Seeds"] > 1) \
        else ""
    st.caption(f"Measured on the {images_of(runs[0], 'test')}; differences are in percentage points.{seeds}", help=(
        "Whole group found judges the whole ranking, first result right only the nearest image. Change: after minus "
        "before training. Against frozen features or raw pixels: after training minus these, which are not trained. "
        "Against PCA: minus centered PCA of them with the run's dimension. Against best: minus the best row. ★ marks "
        "the most of the whole group found among runs with the same data set, split and backbone, and every row within "
        "one standard deviation of it. First result and whole group: against frozen features, judged without labels by "
        "encoders that took no part."))
    with st.expander("Before training, change, and distance to the best run"):
        st.html(table_html(table[["", "Run", FACTS, "Seeds", *(f"{title} {name}" for title in TITLES.values()
                                                               for name in MORE)]], positions, MORE, runs))
    if share_images(runs):
        share(table_downloads("comparison", lambda: paper_table(named)), "compare")


def paper_table(named: Mapping[str, Sequence[Run]]) -> PaperTable:
    """Return the measures for a paper, tested over the seeds, or over the queries where there are too few seeds."""
    runs = [run for members in named.values() for run in members]
    if max(map(len, named.values())) < FEWEST:
        with suppress(UserError):  # the images are missing, and the measures do not need them
            if len(load_retrieval(runs[0]).split.test) <= MOST_RANKED:
                return table_of_runs(runs, titles=list(named), over="queries")
    return table_of_runs(runs, titles=list(named))


def _opposed(named: Mapping[str, Sequence[Run]]) -> list[str]:
    """Return the names of the runs whose measures contradict the judges' verdicts, each against frozen features."""
    judged = [(name, run_verdicts(run), run.evaluation()) for name, runs in named.items() for run in runs]
    return list(dict.fromkeys(name for name, verdicts, evaluation in judged
                              if verdicts is not None and "disagree" in agreement(verdicts, evaluation).values()))


def table_html(table: pd.DataFrame, positions: Sequence[Sequence[int]], columns: Sequence[str],
               runs: Sequence[Run] = (), raw: str = "frozen") -> str:
    """Return the measures as an HTML table, which needs less room than a data frame: two lines of headings.

    Args:
        table: The table of `measure_table`.
        positions: Positions of each row's runs among the compared runs, for their colors.
        columns: The columns of each measure.
        runs: The compared runs, if the frozen features among them have their color.
        raw: What the images are compared by without training.
    """
    heads = dict.fromkeys((measure.plain_title for measure in MAIN_MEASURES), len(columns))
    judged = [name for name in reversed(QUESTION_WORDS) if name in table]  # in the order of the measures
    if judged:
        heads[JUDGED] = len(judged)
    has_seeds = bool((table["Seeds"] > 1).any())
    plain = [name for name in table.columns if name not in ("", "Run", FACTS, "Seeds", *judged)
             and name.split(" ")[0] not in TITLES.values()] + (["Seeds"] if has_seeds else [])
    first = "".join(f"<th scope='col' rowspan='2'>{html.escape(name)}</th>" for name in ("Run", *plain))
    parts = [f"<th scope='colgroup' colspan='{count}'>{title}</th>" for title, count in heads.items()]
    second = "".join(f"<th scope='col'>{name}</th>" for name in (
        *[f"against {raw}" if name == OVER_FROZEN else name for name in columns] * len(TITLES),
        *map(str.lower, judged)))
    line = partial(swatch_of, runs) if runs else swatch
    rows = []
    for row, members in zip(table.to_dict("records"), positions, strict=True):
        cells = "".join(f"<td class='said'>{html.escape(str(row[name]))}</td>" for name in plain)
        cells += "".join(_cell(row[f"{title} {name}"], name) for title in TITLES.values() for name in columns)
        cells += "".join(f"<td class='said'>{html.escape(str(row[name]))}</td>" for name in judged)
        star = "★ " if row[""] else ""
        rows.append(f"<tr><th scope='row'>{''.join(map(line, members))}{star}{html.escape(row['Run'])}"
                    f"<small>{html.escape(row[FACTS])}</small></th>{cells}</tr>")
    return ("<div class='compare-table' tabindex='0' role='region' aria-label='Measures of the runs'><table><thead>"
            f"<tr>{first}{''.join(parts)}</tr><tr>{second}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>")


def _cell(text: str, column: str) -> str:
    """Return a cell; the measures after training are bold."""
    text = html.escape(text.removesuffix(" points"))
    return f"<td><b>{text}</b></td>" if column == "after" else f"<td>{text}</td>"
