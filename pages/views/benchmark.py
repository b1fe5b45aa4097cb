"""Benchmark: all methods with one encoder and one budget for each data set."""

from __future__ import annotations

from collections import Counter
from typing import get_args

import pandas as pd
import streamlit as st

from pages.parts.benchmark.chart import chart_ranked
from pages.parts.benchmark.difference import show_difference
from pages.parts.benchmark.table import COST_CAPTION, GROUP_WORDS, METHOD, RANK, RankedTable, ranked_table, show_cell
from pages.parts.draw.downloads import Download, frame_file, share
from pages.parts.draw.tables import data_table, table_behind
from pages.parts.results.table import show_provenance
from pages.parts.shell.address import choice_from_address, choose_in_box, write_address
from pages.parts.shell.run_status import METHOD_TITLES
from pages.parts.shell.user_errors import show_user_errors
from udml_core.numerics.measures import measure_of
from udml_core.results import benchmark as record
from udml_core.results.benchmark import Benchmark, Order, count_orders, orders
from udml_core.results.records import FOLDER

ALL = "all"
FIRST = "map@r"
COMMAND = "python -m experiments.benchmark --budget 20 --dataset digits"
TABLE, METHOD_BOX, DATASET_BOX = "benchmark-table", "benchmark-method", "benchmark-of"


def choose(benchmark: Benchmark) -> tuple[Benchmark, str]:
    """Choose measure, data set and supervision; the address holds them."""
    measures = benchmark.measures()
    first = FIRST if FIRST in measures else measures[0]
    left, middle, right = st.columns([2, 2, 4])
    with left:
        measure = choose_in_box("Rank by", "measure", {name: measure_of(name).plain_title for name in measures}, first,
                                key="benchmark-measure")
    titles = {ALL: "All, by average rank"} | {name: dataset.title for name, dataset in benchmark.datasets.items()}
    with middle:
        name = choose_in_box("Data set", "dataset", titles, ALL, key="benchmark-dataset")
    groups = benchmark.groups()
    linked = st.query_params.get("uses", "").split(".")
    known = [group for group in groups if group.replace(" ", "-") in linked] or groups
    if "benchmark-uses" not in st.session_state:
        st.session_state["benchmark-uses"] = known
    chosen = right.pills("Training uses", groups, selection_mode="multi", key="benchmark-uses",
                         format_func=GROUP_WORDS.__getitem__,
                         help="Filter the methods by the labels, pairs or test images that they receive.") or groups
    write_address("uses", ".".join(group.replace(" ", "-") for group in chosen) if chosen != groups else "")
    return benchmark.chosen(benchmark.datasets if name == ALL else [name], chosen), measure


def show_table(table: RankedTable) -> None:
    """Show the ranked methods; a click on a cell chooses its runs."""
    def follow() -> None:
        for row, column in st.session_state[TABLE].selection.cells:
            name, dataset = table.cell(row, column)
            st.session_state[METHOD_BOX] = name
            if dataset is not None:
                st.session_state[DATASET_BOX] = dataset

    data_table(table.frame, hide_index=True, width="stretch", height="content", key=TABLE, on_select=follow,
               selection_mode="single-cell", placeholder="–", column_config={
                   RANK: st.column_config.NumberColumn(pinned=True),
                   METHOD: st.column_config.TextColumn(pinned=True, width=230)})
    unranked = (" A method without a rank is not measured on all of these data sets; choose one data set to rank it."
                if table.frame[RANK].isna().any() else "")
    st.caption("Mean ± standard deviation over the seeds; percent unless the measure is a count or a cost. Click a "
               f"cell to see its seeds below and to open its runs.{unranked}")
    st.caption(COST_CAPTION)


def choose_cell(benchmark: Benchmark, table: RankedTable) -> None:
    """Choose a method and a data set, by a click on the table or here, and show the runs."""
    left, right = st.columns(2)
    if st.session_state.get(METHOD_BOX) not in table.names:
        st.session_state[METHOD_BOX] = choice_from_address("method", table.names, table.names[0])
    name = left.selectbox("Method", table.names, key=METHOD_BOX)
    write_address("method", name, table.names[0])
    measured = [key for key, dataset in benchmark.datasets.items() if name in dataset.entries]
    if st.session_state.get(DATASET_BOX) not in measured:
        st.session_state[DATASET_BOX] = measured[0]
    dataset = benchmark.datasets[right.selectbox("Measured on", measured, key=DATASET_BOX,
                                                 format_func=lambda key: benchmark.datasets[key].title)]
    show_cell(dataset.entries[name], dataset)


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
    data_table(pd.DataFrame(counts), hide_index=True, width="stretch", height="content")
    table_behind("Every pair of methods, on every data set", pd.DataFrame(pairs))


def summary(benchmark: Benchmark) -> str:
    """Return one sentence on all tables: how many of the measured pairs have the printed order."""
    count = count_orders(benchmark)
    return (f"Of {count.total() - count['not measured']} printed pairs that are measured here, each counted once, "
            f"**{count['confirmed']} have the papers' order, {count['reversed']} the reverse**, and "
            f"{count['not separated']} cannot be separated.")


def cannot_tell(benchmark: Benchmark) -> str:
    """Return what the table cannot tell, in one sentence."""
    count = len(benchmark.datasets)
    return ("**What this table cannot tell:** which method is best with the network, the learning rate and the "
            f"training time of its own paper, because every method has the same small budget on {count} small data "
            f"set{'s' if count > 1 else ''} here, and no learning rate was tuned.")


def show_benchmark(benchmark: Benchmark) -> None:
    """Show the benchmark."""
    chosen, measure = choose(benchmark)
    table = ranked_table(chosen, measure)
    if not table.names:
        st.info("No chosen method is measured. Choose more kinds of supervision.", icon=":material/lightbulb:")
        return
    chart_ranked(chosen, table.names, measure)
    st.markdown(cannot_tell(chosen))
    show_table(table)
    st.subheader("Which runs are behind a cell?")
    choose_cell(chosen, table)
    st.subheader("Which methods differ?")
    show_difference(chosen, measure, max(len(entry.runs) for dataset in chosen.datasets.values()
                                         for entry in dataset.entries.values()))
    st.subheader("Does the order of the papers hold here?")
    show_orders(benchmark, METHOD_TITLES)
    st.caption("Every method on the same images, with the same encoder, about the same number of passes or steps and "
               "at most four kept views of an image, beside baselines that learn nothing: frozen features, PCA and a "
               "learning rate of 0. Methods without a field for the dimension (Deep-LRML, Deep-SERAPH and others) keep "
               "all dimensions.")
    show_provenance(benchmark.provenance)
    share([Download("This table (CSV)", "benchmark.csv", "text/csv", lambda: frame_file(table.frame)),
           Download("Complete record (JSON)", "benchmark.json", "application/json",
                    (FOLDER / f"{record.NAME}.json").read_bytes)], "benchmark")


def draw() -> None:
    """Draw the view."""
    with show_user_errors():
        measured = record.read()
        if measured is None or not measured.datasets:
            st.info("Nothing has been measured yet. This command measures all methods on the digits in about 20 "
                    "minutes; it resumes where it stopped:", icon=":material/lightbulb:")
            st.code(COMMAND, language="bash")
        else:
            show_benchmark(measured)
