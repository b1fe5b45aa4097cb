"""Whether the order of the methods in the papers' tables holds here."""

from __future__ import annotations

from collections import Counter
from typing import get_args

import pandas as pd
import streamlit as st

from pages.parts.benchmark.table import words_of
from pages.parts.kit.tables import table_behind
from udml_core.results.benchmark import Benchmark, Order, orders

ORDERS: tuple[Order, ...] = get_args(Order)


def show_orders(benchmark: Benchmark, titles: dict[str, str]) -> None:
    """Show how many pairs of methods have the papers' order on each data set.

    Args:
        benchmark: The benchmark.
        titles: Title of each method, by its name.
    """
    counts, pairs = [], []
    for table in benchmark.papers:
        for dataset in benchmark.datasets.values():
            found = orders(table, dataset)
            count = Counter(pair.order for pair in found)
            counts.append({"Table": table.title, "Here": dataset.title, "Pairs": len(found)}
                          | {order.capitalize(): count[order] for order in ORDERS})
            pairs += [{"Table": table.title, "Here": dataset.title, "Better": titles.get(pair.better, pair.better),
                       "Worse": titles.get(pair.worse, pair.worse), "Printed difference": round(pair.printed, 1),
                       "Measured difference": None if pair.measured is None else round(pair.measured, 1),
                       "Order": pair.order} for pair in found]
    st.caption("Each row compares every two methods of a paper's table. An order is confirmed or reversed if the means "
               "here differ by more than the sum of their standard deviations over the seeds and by more than two "
               f"standard errors of the test images. The measure is {words_of('recall@1')}.")
    st.dataframe(pd.DataFrame(counts), hide_index=True, width="stretch", height="content")
    table_behind("Every pair of methods", pd.DataFrame(pairs))
