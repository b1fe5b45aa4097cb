"""The chosen sweep, the measure that chooses its best combination, and the data set."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.numerics.measures import Measure
from udml_core.work.sweeps import CRITERIA, Combination, Sweep

from ..shell.address import choice_from_address, write_address


def choose_sweep(groups: Sequence[Sweep]) -> Sweep:
    """Choose a sweep; the address parameter `sweep` holds its id."""
    by_id = {sweep.id: sweep for sweep in groups}
    wanted = choice_from_address("sweep", by_id, groups[0].id)
    chosen = st.selectbox("Sweep", list(by_id), list(by_id).index(wanted), width=420,
                          format_func=lambda name: by_id[name].spec.name)
    write_address("sweep", chosen)
    return by_id[chosen]


def choose_criterion(planned: str | None) -> Measure:
    """Choose the measure that chooses the best combination; the address parameter `by` holds its name."""
    first = planned if planned in CRITERIA else next(iter(CRITERIA))
    wanted = choice_from_address("by", CRITERIA, first)
    name = st.selectbox("Choose the best by", list(CRITERIA), list(CRITERIA).index(wanted), width=420,
                        format_func=lambda name: CRITERIA[name].name,
                        help="None of these measures reads the test half. A sweep should be judged by the measure that "
                             "it was planned with.")
    write_address("by", name, first)
    return CRITERIA[name]


def choose_dataset(found: Sequence[Combination]) -> list[Combination]:
    """Choose a data set, because measures of different data sets cannot be compared.

    Returns:
        The combinations on the data set.
    """
    names = list(dict.fromkeys(one.dataset for one in found))
    if len(names) < 2:
        return list(found)
    wanted = choice_from_address("data", names, names[0])
    chosen = st.segmented_control("Data set", names, default=wanted, required=True, format_func=title_of_dataset)
    write_address("data", chosen, names[0])
    return [one for one in found if one.dataset == chosen]


def title_of_dataset(name: str) -> str:
    """Return the title of a data set; its name if it is not available any more."""
    try:
        return catalog.find(name).title
    except UserError:
        return name
