"""The leaderboard: a row a run, and the choice of runs by their ids."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from udml_core.exploration.race_figures import SAID
from udml_core.numerics.measures import MAIN_MEASURES
from udml_core.runs import Run, example_runs, list_runs, runs_folder
from udml_core.runs.analyses import REFINED, find_analysis
from udml_core.runs.opinions import QUESTION_WORDS
from udml_core.runs.search import FROZEN
from udml_core.runs.used import searches_in_use
from udml_core.runs.verdict import best_runs, has_labels, images_of, standing
from udml_core.work.jobs.advising import is_trial

from ..draw.palette import change_mark
from ..draw.tables import data_table, inert_table
from ..shell.address import choose_in_box, write_address
from ..shell.race_verdict import advised_search, raced_with_steps, refined_words, run_verdicts
from ..shell.run_groups import PARTS, by_group, group_column, group_of, group_words
from ..shell.run_picker import app_run, first_chosen, titles_in_use, warn_of_link
from ..shell.run_status import EXAMPLE, SUPERVISION, escaped, run_titles
from .baseline_bar import BAR_WIDTH, bar_scale, baseline_bars

MOST_LISTED = 200
SHORT_TABLE = 12  # A longer table has a scroll bar, so that the chosen run stays near the fold.
ROW_HEIGHT, BAR_HEIGHT = 35, 12
"""Heights in pixels of a row, and of the scroll bar with the border: a narrow screen needs it below the last row."""
NAME_WIDTH, MEASURE_WIDTH = 158, 82
"""Width in pixels of the names at most, and of each main measure: a phone shows all three. A wide table widens them."""
STATE_MARKS = {"waiting": "… waiting", "running": "▶ running", "failed": "✕ failed", "stopped": "■ stopped",
               "interrupted": "✕ interrupted"}
ALL = "All data sets"
OPINION_WORDS = ("**Whole group, judged** and **First result, judged** are verdicts without labels: encoders that took "
                 "no part in a run compare all images near a query, and the nearest, with what the plain search finds. "
                 "They see looks, not classes, so they can differ from the measures.")
BAR, STATE, BEST, ADVISED = "Against baseline", "State", "Best", "Advised search"
OVER = {measure.name: f"{measure.name} − baseline" for measure in MAIN_MEASURES}
"""Column with the difference of a measure to the better baseline."""
PLAIN = {measure.name: measure.plain for measure in MAIN_MEASURES}
"""The measures in plain words."""
SHORT = dict(zip(PLAIN, QUESTION_WORDS[::-1], strict=True))
"""The same in words that fit above their figures."""
JUDGED = dict(zip(QUESTION_WORDS, ("First result, judged", "Whole group, judged"), strict=True))
"""Headings of the verdicts without labels; the measures from labels have the same names."""
NOT_JUDGED, COMPARED_WITH = "not judged", "reference"
"""Cells of runs without a verdict: nothing judged them yet, or the others are compared with them."""
WITH_STEPS = ", with steps"
"""The ending of a verdict of a race on a training with further steps, such as whitening."""
HIDDEN = {BEST, ADVISED, *OVER.values(), "Labels", "Tags"}
"""Columns that only the table's own menu shows, as a run's details name what they hold. So the table fits beside the
sidebar of a small screen."""
CHOOSE = "Choose a run for its details, two to six to compare them."
SEEN = "runs-address"
"""Session key of the runs that the page last wrote to the address."""


def choose_dataset(runs: Sequence[Run]) -> list[Run]:
    """Choose whose runs are listed; the address parameter `data` holds the data set.

    Returns:
        The runs on the chosen data set.
    """
    titles = {run.spec().dataset: run.spec().dataset_title for run in runs}
    if len(titles) < 2:
        return list(runs)
    chosen = choose_in_box("Data set", "data", {"": ALL} | titles, "", key="runs-data", width=260,
                           label_visibility="collapsed")
    return [run for run in runs if chosen in ("", run.spec().dataset)]


def choose_tags(runs: Sequence[Run]) -> list[Run]:
    """Choose tags that listed runs have, if any run has a tag."""
    of_runs = [run.notes().tags for run in runs]
    tags = sorted({tag for of_run in of_runs for tag in of_run})
    if not tags:
        return list(runs)
    chosen = st.multiselect("Tags", tags, key="runs-tags", placeholder="All tags", width=260,
                            label_visibility="collapsed")
    return [run for run, of_run in zip(runs, of_runs, strict=True) if set(chosen) <= set(of_run)]


def leaderboard(runs: Sequence[Run]) -> pd.DataFrame:
    """Return a row for each run: measures, differences to the better baseline, verdict without labels, and group.

    Measures that need labels are left out if no run has labels, and so is every column in which no run has a value.

    Args:
        runs: The listed runs.
    """
    evaluations, notes = [run.evaluation() for run in runs], [run.notes() for run in runs]
    of_runs = {measure.name: [standing(evaluation, measure.key) for evaluation in evaluations]
               for measure in MAIN_MEASURES}
    best = best_runs((run.id, group_of(run), of.after)
                     for run, of in zip(runs, of_runs[MAIN_MEASURES[0].name], strict=True))
    titles, (heading, groups) = run_titles(runs) | titles_in_use(runs), group_column(runs)
    if _are_examples(runs):
        titles = {run_id: title.removeprefix(EXAMPLE) for run_id, title in titles.items()}
    is_frozen = [run.spec().method == FROZEN for run in runs]
    over = {name: [None if frozen else of.over_best for of, frozen in zip(of_run, is_frozen, strict=True)]
            for name, of_run in of_runs.items()}
    sides = [[of.side(images) for of, images in zip(of_run, map(images_of, evaluations), strict=True)]
             for of_run in of_runs.values()]
    labeled = are_labeled(runs, evaluations)
    # A phone shows about 310 pixels: the name and the measures come first.
    refined = _refined_in_use(runs)
    columns: dict[str, Sequence[Any]] = {"Run": [titles[run.id] for run in runs]}
    if labeled:
        columns |= {name: [of.after for of in of_run] for name, of_run in of_runs.items()}
        columns |= {BEST: ["★" if run.id in best else "" for run in runs],
                    BAR: baseline_bars(list(zip(*over.values(), strict=True)), list(zip(*sides, strict=True)))}
        columns |= {OVER[name]: differences for name, differences in over.items()}
    columns |= {STATE: [_state_mark(run) for run in runs],
                **_opinions(runs, is_frozen, refined),
                "Labels": [SUPERVISION.get(run.spec().method, "") for run in runs]}
    if heading:
        columns[heading] = groups
    columns["Tags"] = [list(written.tags) for written in notes]
    return pd.DataFrame({name: values for name, values in columns.items() if name == "Run" or any(
        value not in (None, "", []) for value in values)})


def _are_examples(runs: Sequence[Run]) -> bool:
    """Return whether only examples are listed, whose names then need no word for it."""
    return all(run.is_example for run in runs)


def _state_mark(run: Run) -> str:
    """Return the mark of an unfinished run; a race that ends or is stopped stops its trainings."""
    state = run.status().state
    return "■ race ended" if state == "stopped" and is_trial(run) else STATE_MARKS.get(state, "")


def _refined_in_use(runs: Sequence[Run]) -> dict[str, tuple[str, str]]:
    """Return the verdicts on the refined searches that the user chose, by the runs of frozen features they refine."""
    verdicts = dict[str, tuple[str, str]]()
    for run, frame in searches_in_use(runs):
        if run.spec().method == FROZEN and frame.startswith(REFINED):
            said = refined_words(run, find_analysis(run, frame).spec().recipe)
            if said is not None:
                verdicts[run.id] = said
    return verdicts


def _opinions(runs: Sequence[Run], is_frozen: Sequence[bool],
              refined: Mapping[str, tuple[str, str]]) -> dict[str, list[str]]:
    """Return the columns of the verdict without labels: of a race, else of each run's second opinion.

    A cell without a verdict says why, unless no run has any: the others are compared with the frozen features, or
    nothing judged the run yet. A race may have judged a training with further steps only, which its cell says. The last
    column names the refinement that a race advises.

    Args:
        runs: The runs.
        is_frozen: Whether each has frozen features.
        refined: The verdicts on the refined searches in use, by the runs that they refine.
    """
    rows, are_judged = [], False
    for run, frozen in zip(runs, is_frozen, strict=True):
        verdicts, advised = None if frozen else run_verdicts(run), advised_search(run)
        missing = COMPARED_WITH if frozen else NOT_JUDGED if run.stored_status().state == "done" else ""
        said = list(map(SAID.__getitem__, verdicts)) if verdicts else []
        if not said and (raced := raced_with_steps(run)):
            said = [f"{SAID[verdict]}{WITH_STEPS}" for verdict in raced[0].verdicts(raced[1])]
        if run.id in refined:
            said = [f"refined: {words}" for words in refined[run.id]]
        are_judged = are_judged or bool(said)
        rows.append((*(said or (missing, missing)), advised.words if advised else ""))
    if not are_judged:
        rows = [("", "", advised) for *_, advised in rows]
    first, groups, advised_steps = (list(column) for column in zip(*rows, strict=True))
    return dict(zip((*QUESTION_WORDS[::-1], ADVISED), (groups, first, advised_steps), strict=True))


def are_labeled(runs: Sequence[Run], evaluations: Sequence[Mapping[str, Any] | None]) -> bool:
    """Return whether measures from labels can be shown: a run has them, or nothing is known of any run yet.

    A run without evaluation is known by its first row of curves.
    """
    known = []
    for run, evaluation in zip(runs, evaluations, strict=True):
        if evaluation is not None:
            known.append(has_labels(evaluation))
        elif rows := run.metrics()[0]:
            known.append("sample map@r" in rows[0])
    return any(known) or not known


def shown_columns(runs: Sequence[Run], columns: Iterable[str]) -> list[str]:
    """Return the columns that the table shows without its menu, in their order.

    Where none of the user's own runs has labels, the verdict without labels stands alone, which examples have, too.
    Else all columns have the same order, whatever is listed.

    Args:
        runs: The listed runs.
        columns: The columns of the leaderboard.
    """
    examples = {run.id for run in example_runs()}
    own = [run for run in runs if run.id not in examples] or runs
    is_labeled = are_labeled(own, [run.evaluation() for run in own])  # one that was stopped early says nothing
    shown = [name for name in columns if name not in HIDDEN and name.split(" · ")[0] not in PARTS]
    if QUESTION_WORDS[0] in shown and not is_labeled:
        return [name for name in shown if name not in (*SHORT, BAR)]
    return shown


def show_marks(runs: Sequence[Run], columns: Collection[str], is_mixed: bool = False) -> None:
    """Say in one line what the table shows; the stars, the bars and the verdicts are explained behind its "?".

    Args:
        runs: The listed runs.
        columns: The columns of the leaderboard.
        is_mixed: Whether some of the runs have labels.
    """
    groups = by_group(runs)
    together = f"All runs: {escaped(group_words(runs[0]))}." if len(groups) == 1 else ""
    if not {measure.name for measure in MAIN_MEASURES} & set(columns):
        without = "Your runs have no labels." if is_mixed else "These runs have no labels."
        st.caption(f"{CHOOSE} {together} {without}".replace("  ", " "), help=OPINION_WORDS + (
            " The table's menu of columns shows the measures of examples, which have labels." if is_mixed else ""))
        return
    second = f" {OPINION_WORDS}" if QUESTION_WORDS[0] in columns else ""
    star = "★: most of the whole group found on the same data." if BEST in columns else ""
    examples = "These are examples." if _are_examples(runs) else ""
    st.caption(" ".join(filter(None, (examples, CHOOSE, together, star))),
               help="Bars are against the better baseline: the upper one whole group, the lower one first result. "
               "The baselines need no training: the features that training begins with (frozen), and PCA of "
               "them with the dimension of the run's embedding. ★ marks the highest MAP@R among runs with the same "
               "data set, split and backbone. The table's menu of columns also shows the differences as figures, in "
               "percentage points. "
               + " ".join(f"{measure.name}: {measure.help}" for measure in MAIN_MEASURES[::-1]) + second)


def choose_runs(runs: Sequence[Run]) -> list[Run]:
    """Choose runs in the leaderboard; the address holds their ids.

    The table's ticks are row numbers, so a table of other runs gets a key and ticks of its own: when a run starts or
    ends, the same runs stay chosen.

    Returns:
        The chosen runs; at first the runs in the address, else the app's run, else the newest.
    """
    listed = [run for group in by_group(runs[:MOST_LISTED]) for run in group]
    ids = [run.id for run in listed]
    wanted = _in_address()
    named = [run_id for run_id in wanted or [app_run() or ""] if run_id in ids]
    chosen = named or [first_chosen(listed).id] if listed else []
    is_unknown = bool(wanted) and not named and wanted[0] not in {run.id for run in list_runs(runs_folder())}
    if is_unknown:
        warn_of_link(wanted[0])
    if st.session_state.get(SEEN) != wanted:  # a link, Back, or a choice in the sidebar
        st.session_state["runs-links"] = st.session_state.get("runs-links", 0) + 1
    frame = leaderboard(listed)
    shown = shown_columns(listed, frame.columns)
    content = " ".join([str(st.session_state.get("runs-links", 0)), *ids])
    key = "runs-table-" + hashlib.sha1(content.encode(), usedforsecurity=False).hexdigest()[:10]
    with st.container(key=f"runs-rows-{min(len(frame), SHORT_TABLE)}"):  # app.css keeps its place
        event = data_table(
            _formatted(inert_table(frame)), hide_index=True, width="stretch", on_select="rerun",
            selection_mode="multi-row", key=key,
            height=ROW_HEIGHT * (min(len(frame), SHORT_TABLE) + 1) + BAR_HEIGHT,
            selection_default={"selection": {"rows": [ids.index(run_id) for run_id in chosen]}},
            column_config=_columns(frame, shown), column_order=shown,
            placeholder="",  # runs without labels have no measures; dashes would look like missing results
            alt="Leaderboard of runs: whole group found and first result right, against the better baseline."
                if BAR in shown else "Leaderboard of runs: the verdict without labels on each.")
    show_marks(listed, frame.columns if BAR in shown else shown, is_mixed=BAR in frame)
    rows = [row for row in event.selection.rows if row < len(listed)]
    chosen_runs = [listed[row] for row in rows]
    # The first chosen run stays first when a run above it is ticked.
    chosen_runs.sort(key=lambda run: chosen.index(run.id) if run.id in chosen else len(chosen))
    # The sidebar's run stays: the first row is no choice of the user's if the table lacks that run.
    if chosen_runs and (named or is_unknown or [run.id for run in chosen_runs] != chosen):
        write_address("run", chosen_runs[0].id)
        write_address("with", ".".join(run.id for run in chosen_runs[1:]))
    st.session_state[SEEN] = _in_address()
    return chosen_runs


def _in_address() -> list[str]:
    """Return the ids of the runs in the address."""
    named = [st.query_params.get("run", ""), *st.query_params.get("with", "").split(".")]
    return [run_id for run_id in dict.fromkeys(named) if run_id]


def _formatted(frame: pd.DataFrame) -> Any:
    """Format measures and differences as text, in columns that a click on the heading still sorts as numbers."""
    formats: dict[str, Any] = {measure.name: measure.text for measure in MAIN_MEASURES if measure.name in frame}
    formats |= {name: change_mark for name in OVER.values() if name in frame}
    styled, main = frame.style.format(formats, na_rep=""), MAIN_MEASURES[0]
    if BEST in frame:
        def starred(value: Any) -> str:
            return f"★ {main.text(value)}"

        styled.format(starred, subset=(frame.index[frame[BEST] == "★"], [main.name]))
    return styled


def _columns(frame: pd.DataFrame, shown: Sequence[str]) -> dict[str, Any]:
    """Describe the columns of the leaderboard; the last that is shown fills the room that is left."""
    column = st.column_config
    columns: dict[str, Any] = {
        "Run": column.TextColumn(width=_text_width(frame["Run"], NAME_WIDTH)),
        BAR: column.ImageColumn(BAR, width=BAR_WIDTH + 66, help=(
            f"Difference to the better baseline. Upper bar: {MAIN_MEASURES[0].plain.lower()}, lower bar: "
            f"{MAIN_MEASURES[1].plain.lower()}. "
            "To the right of the line: above the better baseline; to the left: below it; gray: chance may be "
            "the reason. The room of the bars ends at "
            f"{_scale(frame):.0f} percentage points.")),
        STATE: column.TextColumn(width=104),
        ADVISED: column.TextColumn(width=230, help="The search that a race on these images advises."),
        "Labels": column.TextColumn(width=62, help="What the method learns from: no labels, few labels, pairs of "
                                                   "similar and dissimilar images, or all labels.")}
    for heading in (name for name in frame.columns if name.split(" · ")[0] in PARTS):
        columns[heading] = column.TextColumn(width=_text_width([heading, *frame[heading]], 230),
                                             help="Only runs of the same group can be compared.")
    judged = (f"against the plain search, judged without labels by encoders that took no part in the run; a race "
              "decides first. "
              f"{NOT_JUDGED.capitalize()}: choose the run and press Judge without labels. With steps: a race judged "
              "the training with further steps, such as whitening, not alone.")
    for heading, subject in zip(QUESTION_WORDS, ("The nearest image", "All images near a query"), strict=True):
        title = JUDGED[heading]
        width = 7 * max(map(len, (title, *frame.get(heading, ())))) + 10
        columns[heading] = column.TextColumn(title, help=f"{subject}, {judged}",
                                             width=None if heading == shown[-1] else width)
    for name, over in OVER.items():
        more = 7 * (len(name) - len("R@1"))  # a longer name needs wider columns
        columns[name] = column.NumberColumn(SHORT[name], width=MEASURE_WIDTH, help=(
            f"{PLAIN[name]} ({name}), after training, on test images, in percent."))
        columns[over] = column.NumberColumn(
            width=112 + more, help=f"{name} minus that of the better baseline: the frozen features, or PCA of them "
                                   "with the same dimension. In percentage points.")
    return columns


def _scale(frame: pd.DataFrame) -> float:
    """Return the percentage points at either end of the bars."""
    return bar_scale([value for name in OVER.values() if name in frame for value in frame[name].dropna()])


def _text_width(texts: Iterable[str], most: int) -> int:
    """Return the width in pixels of a column of texts."""
    return min(most, max(120, 7 * max(map(len, texts)) + 20))
