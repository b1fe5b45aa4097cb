"""Whether the order of the methods in the papers' tables holds here."""

from __future__ import annotations

from collections import Counter
from typing import get_args

import pandas as pd
import streamlit as st

from udml_core.results.benchmark import Benchmark, Order, count_orders, orders

from ..draw.tables import table_behind

ORDERS: tuple[Order, ...] = get_args(Order)


def show_orders(benchmark: Benchmark, titles: dict[str, str]) -> None:
    """Show how many pairs of methods have the papers' order on the most similar data set.

    Args:
        benchmark: The benchmark.
        titles: Title of each method, by its name.
    """
    counts, pairs = [], []
    for table in benchmark.papers:
        for dataset in benchmark.datasets.values():
            compared = orders(table, dataset)
            is_similar = dataset.near == table.data
            if is_similar:
                count = Counter(pair.order for pair in compared)
                counts.append({"Table": table.title, "Here": dataset.title, "Pairs": len(compared)}
                              | {order.capitalize(): count[order] for order in ORDERS})
            pairs += [{"Table": table.title, "Here": dataset.title, "Similar data": is_similar,
                       "Better": titles.get(pair.better, pair.better), "Worse": titles.get(pair.worse, pair.worse),
                       "Printed difference": round(pair.printed, 1),
                       "Measured difference": None if pair.measured is None else round(pair.measured, 1),
                       "Order": pair.order} for pair in compared]
    if counts:
        st.markdown(summary(benchmark))
    st.caption("Each row compares every two methods of a paper's table on the data set here that is most like the "
               "paper's, whatever is chosen above. The measure is R@1 on classes that training has not seen, also "
               "where a paper prints another measure or tests on seen classes. An order is confirmed or reversed if "
               "the means differ by more than the sum of their standard deviations over the seeds, and by more than "
               "two standard errors over the test images, compared image by image. By chance alone, up to one of 20 "
               "equal pairs would pass the second condition.")
    st.dataframe(pd.DataFrame(counts), hide_index=True, width="stretch", height="content")
    table_behind("Every pair of methods, on every data set", pd.DataFrame(pairs))


def summary(benchmark: Benchmark) -> str:
    """Return one sentence on all tables: how many of the measured pairs have the printed order."""
    count = count_orders(benchmark)
    return (f"Of {count.total() - count['not measured']} printed pairs that are measured here, each counted once, "
            f"**{count['confirmed']} have the papers' order, {count['reversed']} the reverse**, and "
            f"{count['not separated']} cannot be separated.")
