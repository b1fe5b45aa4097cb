"""Measures before and after training, averaged over seeds, and the settings that differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from pages.parts.base.run_groups import group_column, group_of
from pages.parts.base.run_status import METHOD_TITLES, escaped, group_titles, run_titles
from pages.parts.base.setting_words import setting_title
from pages.parts.compare.choosing import share_images
from pages.parts.compare.verdict import verdict_words
from pages.parts.kit.palette import percent, points
from udml_core.jobs.presets import show
from udml_core.runs import Run
from udml_core.runs.comparison import Spread, differing_settings, seed_groups, settings_of, spread
from udml_core.runs.verdict import MEASURE_NAMES, best_runs, standing

PAGE_WIDTH, TITLE_WIDTH, MOST_WIDTH = 1014, 230, 260
"""Widths in pixels: of the page at 1400 pixels, of the titles of settings, and of a run's settings at most."""
HIGHLIGHT = "background-color: rgba(230, 159, 0, 0.22)"


def repetitions(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Return the runs by name; runs that differ only in the seed share a name."""
    groups = [[runs[position] for position in group] for group in seed_groups([settings_of(run) for run in runs])]
    return dict(zip(group_titles(groups), groups, strict=True))


def measure_table(runs: Sequence[Run]) -> pd.DataFrame:
    """Return a row for each group of runs that differ only in the seed.

    Columns: the mean before and after training, with the sample's standard deviation over the seeds, and the mean
    differences to frozen features and to PCA of the same width. Stars compare only rows with the same data set, split
    and backbone; a column names them if they differ.
    """
    named = repetitions(runs)
    heading, groups = group_column([members[0] for members in named.values()])
    rows: list[dict[str, Any]] = []
    for (name, members), group in zip(named.items(), groups, strict=True):
        row: dict[str, Any] = {"": "", "Run": name, **({heading: group} if heading else {}), "Seeds": len(members)}
        for measure, title in MEASURE_NAMES.items():
            of = [standing(run.evaluation(), measure) for run in members]
            row |= {f"{title} before": spread_text(spread([value.before for value in of])),
                    f"{title} after": spread_text(spread([value.after for value in of])),
                    f"{title} − frozen": difference_text(spread([value.over_frozen for value in of])),
                    f"{title} − PCA": difference_text(spread([value.over_pca for value in of]))}
        rows.append(row)
    means = [spread([standing(run.evaluation()).after for run in members]) for members in named.values()]
    best = best_runs((str(number), group_of(members[0]), None if mean is None else round(mean.mean, 1))
                     for number, (members, mean) in enumerate(zip(named.values(), means, strict=True)))
    for number in best:
        rows[int(number)][""] = "★"
    return pd.DataFrame(rows)


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


def show_measures(runs: Sequence[Run]) -> None:
    """Show the verdict, and the measures of all runs; a star marks the highest MAP@R."""
    table = measure_table(runs)
    equal = equal_runs(runs)
    if share_images(runs) and len(equal) > 1:
        judged = {name: [standing(run.evaluation()) for run in members] for name, members in repetitions(runs).items()}
        if words := verdict_words(judged):
            st.markdown(f":material/emoji_events: {words}")
    st.dataframe(table, hide_index=True, width="stretch", height="content", column_config=_columns(table),
                 alt="Measures before and after training, by run.")
    seeds = " Runs that differ only in the seed share a row: mean ± standard deviation." if any(table["Seeds"] > 1) \
        else ""
    st.caption("Measured on the test half. ★ marks the highest MAP@R after training among runs with the same data set, "
               f"split and backbone.{seeds}")
    if repeated := [names for names in equal if len(names) > 1]:
        st.info(" ".join(f"{' and '.join(names)} have equal settings, also the seed: they repeat one training, so "
                         "differences between them are no effect of a setting." for names in repeated),
                icon=":material/content_copy:")
    if not share_images(runs):
        st.warning("These runs search different test images, so their measures cannot be compared with each other.",
                   icon=":material/warning:")


def _columns(table: pd.DataFrame) -> dict[str, Any]:
    """Describe the columns; the widths together fit the page unless long names or several groups need more."""
    column = st.column_config.TextColumn
    columns: dict[str, Any] = {"": column(width=30, help="★: the highest MAP@R of its group."),
                               "Run": column(width=min(340, max(130, 7 * max(map(len, table["Run"])) + 20))),
                               "Seeds": st.column_config.Column(width=52)}
    for name in MEASURE_NAMES.values():
        more = 7 * (len(name) - len("R@1"))  # a longer name needs wider columns
        columns[f"{name} before"] = column(width=92 + more, help=f"{name} before training.")
        columns[f"{name} after"] = column(width=84 + more, help=f"{name} after training.")
        columns[f"{name} − frozen"] = column(
            width=98 + more, help=f"{name} minus that of the frozen features, in percentage points.")
        columns[f"{name} − PCA"] = column(
            width=98, help=f"{name} minus that of centered PCA of the same width, in percentage points.")
    return columns


def show_settings(runs: Sequence[Run], names: Sequence[str]) -> None:
    """Show the settings of all runs; differing ones are marked by ≠ and a color, and come first."""
    settings = [settings_of(run) for run in runs]
    differing = differing_settings(settings)
    opposed = opposed_settings(settings)
    everything = st.toggle("Show equal settings too", key="compare-equal")
    equal = [name for name in dict.fromkeys(name for row in settings for name in row) if name not in differing]
    fields = [*opposed, *(name for name in differing if name not in opposed), *(equal if everything else [])]
    if not fields:
        st.info("All settings of these runs are equal.", icon=":material/info:")
        return
    titles = [next(setting_title(field, row["method"]) for row in settings if field in row) for field in fields]
    frame = pd.DataFrame({"": ["≠" if field in opposed else "" for field in fields], "Setting": titles} | {
        name: [setting_text(row.get(field), field) for field in fields]
        for name, row in zip(names, settings, strict=True)})
    styled = frame.style.apply(lambda row: [HIGHLIGHT if row[""] else ""] * len(row), axis=1)
    width = min(MOST_WIDTH, (PAGE_WIDTH - 30 - TITLE_WIDTH) // len(names))
    column = st.column_config.TextColumn
    st.dataframe(styled, hide_index=True, width="content", height="content",
                 column_config={"": column(width=30), "Setting": column(width=TITLE_WIDTH)}
                 | {name: column(width=width) for name in names}, alt="Settings that differ, by run.")
    st.caption("≠ marks settings with different values. A dash: the run's method has no such setting.")


def opposed_settings(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the settings that at least two runs have with different values, in order."""
    known = {name: [value for value in values if value is not None]
             for name, values in differing_settings(settings).items()}
    return [name for name, values in known.items() if any(value != values[0] for value in values)]


def setting_text(value: Any, name: str = "") -> str:
    """Return a setting as text: the method's title, on or off, a number; a dash if the run has no such setting."""
    if value is None:
        return "–"
    if name == "method":
        return METHOD_TITLES.get(value, str(value))
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else show(value)
