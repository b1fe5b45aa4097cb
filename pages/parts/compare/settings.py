"""The settings of several runs, the differing settings first, and the facts below the name of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from udml_core.runs import Run
from udml_core.runs.run_comparison import differing_settings, settings_of

from ..draw.tables import data_table, inert_table
from ..shell.run_status import METHOD_TITLES, SUPERVISION
from ..shell.setting_words import setting_title, value_text

PAGE_WIDTH, TITLE_WIDTH, MOST_WIDTH = 1014, 230, 260
"""Widths in pixels: of the page at 1400 pixels, of the titles of settings, and of a run's settings at most."""
METHOD = "Method"
"""The title of the setting that names the method."""
STEPS = "Steps after training"
"""The title of what refines the embedding of a run."""
LABELS = {"none": "no labels", "few": "few labels", "pairs": "pairs of images", "all": "all labels"}
HIGHLIGHT = "background-color: rgba(230, 159, 0, 0.22)"


def dimension_of(run: Run) -> int | None:
    """Return the dimension of a run's embedding; None before its evaluation."""
    measured = (run.evaluation() or {}).get("final", {}).get("dimension")
    return None if measured is None else round(measured)


def learns_from(run: Run) -> str | None:
    """Return what a run's method learns from; None if this version does not know the method."""
    return LABELS.get(SUPERVISION.get(run.spec().method, ""))


def facts(run: Run) -> str:
    """Say how many dimensions a run's embedding has and what its method learns from."""
    dimension, source = dimension_of(run), learns_from(run)
    return " · ".join(filter(None, ["" if dimension is None else f"{dimension} dimensions", source]))


def show_settings(runs: Sequence[Run], names: Sequence[str], steps: Sequence[str] = ()) -> None:
    """Show the settings of all runs; differing ones are marked by ≠ and a color, and come first.

    Args:
        runs: The compared runs.
        names: Their names.
        steps: The steps of each search after training, in words; empty where no steps are in view.
    """
    settings, titles = [settings_by_words(run) for run in runs], full_titles(runs)
    if steps:
        settings = [{STEPS: words} | of for words, of in zip(steps, settings, strict=True)]
        titles = {STEPS: STEPS} | titles
    differing = differing_settings(settings)
    opposed = opposed_settings(settings)
    everything = st.toggle("Show equal settings too", key="compare-equal")
    equal = [name for name in titles if name not in differing]
    shown = [*opposed, *(name for name in differing if name not in opposed), *(equal if everything else [])]
    if not shown:
        st.info("All settings of these runs are equal.", icon=":material/info:")
        return
    frame = pd.DataFrame({"": ["≠" if name in opposed else "" for name in shown],
                          "Setting": [titles[name] for name in shown]} | {
        name: [setting_text(row.get(setting), setting) for setting in shown]
        for name, row in zip(names, settings, strict=True)})
    styled = inert_table(frame).style.apply(lambda row: [HIGHLIGHT if row[""] else ""] * len(row), axis=1)
    width = min(MOST_WIDTH, (PAGE_WIDTH - 30 - TITLE_WIDTH) // len(names))
    column = st.column_config.TextColumn
    data_table(styled, hide_index=True, width="content", height="content",
               column_config={"": column(width=30), "Setting": column(width=TITLE_WIDTH)}
               | {name: column(width=width) for name in names}, alt="Settings that differ, by run.")
    st.caption("≠ marks settings with different values. A dash: the run's method has no such setting.")


def settings_by_words(run: Run) -> dict[str, Any]:
    """Return a run's settings by their names in words: a name such as gamma means something else in another method."""
    return {title.split(" · ")[0]: value for title, value in _settings_by_title(run).items()}


def full_titles(runs: Sequence[Run]) -> dict[str, str]:
    """Return the titles of settings with symbol and unit, by their words; the words alone where the symbols differ."""
    titles: dict[str, set[str]] = {}
    for run in runs:
        for title in _settings_by_title(run):
            titles.setdefault(title.split(" · ")[0], set()).add(title)
    return {words: min(full) if len(full) == 1 else words for words, full in titles.items()}


def _settings_by_title(run: Run) -> dict[str, Any]:
    settings = settings_of(run)
    return {"Learns from": learns_from(run)} | {
        setting_title(name, settings["method"]): value for name, value in settings.items()}


def opposed_settings(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the settings that at least two runs have with different values, in order."""
    known = {name: [value for value in values if value is not None]
             for name, values in differing_settings(settings).items()}
    return [name for name, values in known.items() if any(value != values[0] for value in values)]


def setting_text(value: Any, title: str = "") -> str:
    """Return a setting as text: the method's title, on or off, a number; a dash if the run has no such setting."""
    if value is None:
        return "–"
    if title == METHOD:
        return METHOD_TITLES.get(value, str(value))
    return value_text(value)
