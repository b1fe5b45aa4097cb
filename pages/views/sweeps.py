"""Sweeps: groups of runs that try several values, their progress, and the best of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from pages.parts.draw.downloads import share, table_downloads
from pages.parts.draw.tables import data_table
from pages.parts.shell.address import choice_from_address, choose_in_box, choose_segment, write_address
from pages.parts.shell.run_status import METHOD_TITLES
from pages.parts.shell.setting_words import setting_title
from pages.parts.shell.user_errors import show_user_errors
from pages.parts.shell.views import view_link
from pages.parts.sweeps.charts import show_multiples, show_parallel
from pages.parts.sweeps.empty import show_empty
from pages.parts.sweeps.maps import show_maps
from pages.parts.sweeps.progress import show_actions, show_progress
from pages.parts.sweeps.verdicts import are_judged, are_labeled, show_judging, verdict_columns
from pages.parts.sweeps.words import combination_title, combination_words, criterion_text, measured
from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.numerics.measures import Measure
from udml_core.runs import runs_folder
from udml_core.work import sweeps
from udml_core.work.jobs.presets import show
from udml_core.work.sweeps import CRITERIA, JUDGED, Combination, Sweep


def choose_sweep(groups: Sequence[Sweep]) -> Sweep:
    """Choose a sweep; the address parameter `sweep` holds its id."""
    by_id = {sweep.id: sweep for sweep in groups}
    wanted = choice_from_address("sweep", by_id, groups[0].id)
    chosen = st.selectbox("Sweep", list(by_id), list(by_id).index(wanted), width=420,
                          format_func=lambda name: by_id[name].spec.name)
    write_address("sweep", chosen)
    return by_id[chosen]


def choose_criterion(planned: str | None, is_judged_alone: bool = False) -> Measure:
    """Choose the measure that chooses the best combination; the address parameter `by` holds its name.

    Args:
        planned: The measure that the sweep was planned with.
        is_judged_alone: Whether judges have compared runs that labels have not measured, so that they choose first.
    """
    first = JUDGED if is_judged_alone else planned if planned in CRITERIA else next(iter(CRITERIA))
    titles = {name: measure.name for name, measure in CRITERIA.items()}
    name = choose_in_box("Choose the best by", "by", titles, first, width=420,
                         help="None of these measures reads a label of the test half. A sweep should be judged by "
                              "the measure that it was planned with.")
    return CRITERIA[name]


def choose_dataset(combinations: Sequence[Combination]) -> list[Combination]:
    """Choose a data set, because measures of different data sets cannot be compared.

    Returns:
        The combinations on the data set.
    """
    names = list(dict.fromkeys(combination.dataset for combination in combinations))
    if len(names) < 2:
        return list(combinations)
    chosen = choose_segment("Data set", "data", names, names[0], key="sweep-dataset", format_func=title_of_dataset)
    return [combination for combination in combinations if combination.dataset == chosen]


def title_of_dataset(name: str) -> str:
    """Return the title of a data set; its name if it is not available any more."""
    try:
        return catalog.find(name).title
    except UserError:
        return name


def show_best(combinations: Sequence[Combination], criterion: Measure) -> None:
    """Show the best combination, its measure on the test half, and the ways to its run."""
    best = next(iter(sweeps.best_combinations(combinations).values()), None)
    if best is None:
        finished = any(member.state == "done" for combination in combinations for member in combination.members)
        st.caption(f"The finished runs have not measured this: {criterion.name}. Choose another measure." if finished
                   else "The best combination appears when the first run has finished.")
        return
    others = len(sweeps.shared_first(combinations)) - 1
    level = "" if not others else (f" {'Another is' if others == 1 else f'{others} others are'} within one standard "
                                   "deviation of it, so the seeds do not tell them apart.")
    unfinished = sum(len(combination.runs) < len(combination.members) for combination in combinations)
    seeds = f"mean of {len(best.runs)} seeds" if len(best.runs) > 1 else "one seed"
    st.success(f"**Best{' so far' if unfinished else ''}: {combination_words(best)}** · {criterion.name}: "
               f"{criterion_text(best, criterion)}, {seeds}.{level}", icon=":material/trophy:")
    test = "" if best.test is None else (f"On the test half its MAP@R is {measured(best.test)}; the test half has no "
                                         "influence on the choice. ")
    st.caption(f"{test}{criterion.help}")
    run = sweeps.best_run(best, criterion.key)
    with st.container(horizontal=True, gap="small"):
        view_link("runs", label="Its run" if len(best.runs) == 1 else "Its median run",
                     icon=":material/monitoring:", query_params={"run": run.id})
        view_link("train", label="Train with its values", icon=":material/content_copy:",
                     query_params={"like": run.id}, help="Opens Lab with every field of this run filled in.")


def combination_table(combinations: Sequence[Combination], criterion: Measure) -> pd.DataFrame:
    """Return a row for each combination, the highest mean first, unmeasured ones last.

    Without labels the verdicts of judges stand in place of the test half's measure, with labels beside it. A star
    marks the best and every row within one standard deviation of it.
    """
    best, labeled = sweeps.shared_first(combinations), are_labeled(combinations)
    shows_verdicts = are_judged(combinations) or not labeled
    several = len({combination.method for combination in combinations}) > 1
    names = list(dict.fromkeys(name for combination in combinations for name in combination.values))
    rows: list[dict[str, Any]] = []
    for combination in sorted(combinations, key=lambda combination: -combination.mean_score):
        row: dict[str, Any] = {"": "★" if any(combination is winner for winner in best) else ""}
        if several:
            row["Method"] = METHOD_TITLES.get(combination.method, combination.method)
        row |= {setting_title(name, combination.method if name in combination.values else combinations[0].method):
                show(combination.values[name]) if name in combination.values else "–" for name in names}
        row |= {"Seeds": f"{len(combination.runs)} of {len(combination.members)}",
                criterion.name: criterion_text(combination, criterion)}
        row |= {"MAP@R, test half": measured(combination.test)} if labeled else {}
        row |= verdict_columns(combination, labeled) if shows_verdicts else {}
        rows.append(row)
    return pd.DataFrame(rows)


def show_table(combinations: Sequence[Combination], criterion: Measure) -> None:
    """Show the combinations, the best marked by a star."""
    data_table(combination_table(combinations, criterion), hide_index=True, width="stretch",
               column_config={"": st.column_config.TextColumn(width=30, help=(
                   "★: the best by the chosen measure, and every row within one standard deviation of it."))},
               alt=f"Combinations of values by {criterion.name}, the highest first.")
    st.caption("Mean ± standard deviation over the seeds. The star goes by the chosen measure, never by labels of the "
               "test half. First result and whole group: what judges without labels say in comparison with the plain "
               "search; seeds that differ show no clear difference.")
    show_judging(combinations)


def show_sweep(groups: Sequence[sweeps.Sweep]) -> None:
    """Show a group: progress, the best combination, and every combination by its values."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        sweep = choose_sweep(groups)
        spec = sweep.spec
        members = sweep.members()
        known = sweeps.combinations(members, spec.varied, JUDGED)
        criterion = choose_criterion(spec.criterion, are_judged(known) and not are_labeled(known))
    progress = sweeps.progress_of(members)
    show_progress(sweep, progress)
    combinations = choose_dataset(sweeps.combinations(members, spec.varied, criterion.key))
    measured = [combination for combination in combinations if combination.score is not None]
    show_maps(combinations)
    show_best(combinations, criterion)
    show_actions(sweep, progress)
    if len(measured) > 1:
        show_multiples(measured, criterion)
        show_parallel(measured, criterion)
    show_table(combinations, criterion)
    if measured:
        titles = [combination_title(combination) for combination in measured]
        share(table_downloads("sweep", lambda: sweeps.paper_table(measured, titles, criterion.key)), "sweep")


def draw() -> None:
    """Draw the view."""
    with show_user_errors():
        groups = sweeps.list_sweeps(runs_folder())
        if groups:
            show_sweep(groups)
        else:
            show_empty()
