"""Every combination of a sweep as a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from udml_core.numerics.measures import Measure
from udml_core.work import sweeps
from udml_core.work.jobs.presets import show
from udml_core.work.sweeps import Combination

from ..shell.run_status import METHOD_TITLES
from ..shell.setting_words import setting_title
from .words import criterion_text, measured


def combination_table(found: Sequence[Combination], criterion: Measure) -> pd.DataFrame:
    """Return a row for each combination, the highest mean first, unmeasured ones last."""
    best = list(sweeps.best_combinations(found).values())
    several = len({one.method for one in found}) > 1
    names = list(dict.fromkeys(name for one in found for name in one.values))
    rows: list[dict[str, Any]] = []
    for one in sorted(found, key=lambda one: -(one.score.mean if one.score else float("-inf"))):
        row: dict[str, Any] = {"": "★" if any(one is winner for winner in best) else ""}
        if several:
            row["Method"] = METHOD_TITLES.get(one.method, one.method)
        row |= {setting_title(name, one.method if name in one.values else found[0].method):
                show(one.values[name]) if name in one.values else "–" for name in names}
        row |= {"Seeds": f"{len(one.runs)} of {len(one.members)}", criterion.name: criterion_text(one, criterion),
                "MAP@R, test half": measured(one.test)}
        rows.append(row)
    return pd.DataFrame(rows)


def show_table(found: Sequence[Combination], criterion: Measure) -> None:
    """Show the combinations, the best marked by a star."""
    st.dataframe(combination_table(found, criterion), hide_index=True, width="stretch",
                 column_config={"": st.column_config.TextColumn(width=30, help="★: the best by the chosen measure.")},
                 alt=f"Combinations of values by {criterion.name}, the highest first.")
    st.caption("Mean ± standard deviation over the seeds. The star goes by the chosen measure, never by the test half.")
