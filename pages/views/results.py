"""Results: measurements of this project beside the values that papers report."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import streamlit as st

from pages.parts.draw.downloads import Download, frame_file, share, table_downloads
from pages.parts.draw.figures import curve, curve_names
from pages.parts.draw.tables import data_table
from pages.parts.results.charts import MOST_ROWS, chart_by_row, chart_by_width, has_widths, top_rows
from pages.parts.results.headline import headline
from pages.parts.results.many_curves import MOST_COLORED, many_curves
from pages.parts.results.table import number_frame, paper_table, show_provenance, table_frame
from pages.parts.shell.address import choose_in_box
from pages.parts.shell.user_errors import show_user_errors
from udml_core.numerics.measures import curve_of, measure_of
from udml_core.results import records
from udml_core.results.records import Experiment, Table

# The chart shows the first of these that was measured.
SHOWN_FIRST = ("knn@200", "map@r", "recall@1", "mprec@10", "purity")
NOT_CHARTED = ("seconds", "width")
CURVES_SHOWN_FIRST = ("sample knn@200", "sample map@r")
FEWEST_EPOCHS = 3  # Shorter curves are not drawn.


def choose_experiment() -> Experiment:
    """Choose a record; the address holds its name."""
    findings = {finding.name: finding for finding in records.findings()}
    name = choose_in_box("Experiment", "record", findings, next(iter(findings)), key="results-record",
                         format_func=lambda name: findings[name].title)
    return records.read(findings[name])


def choose_measure(table: Table, key: str) -> str:
    """Choose the measure of a chart; there is no choice if the table has a single one."""
    measures = [measure for measure in table.measures() if measure not in NOT_CHARTED] or table.measures()
    if len(measures) == 1:
        return measures[0]
    first = next((measure for measure in SHOWN_FIRST if measure in measures), measures[0])
    measure: str = st.selectbox("Measure", measures, measures.index(first), key=f"{key}-measure",
                                format_func=lambda name: measure_of(name).plain_title)
    return measure


def show_chart(table: Table, measure: str, key: str, words: str = "") -> None:
    """Show one data set's rows as a chart, with words below it."""
    top = top_rows(table, measure)
    if has_widths(table):
        chart_by_width(table, measure, f"{key}-width")
        top = table
    else:
        chart_by_row(top, measure, f"{key}-dots")
    if words:
        st.caption(words)
    if top is not table:
        with st.expander(f"All {len(table.ranked(measure))} rows as a chart", icon=":material/unfold_more:"):
            chart_by_row(table, measure, f"{key}-all-dots")


def show_numbers(table: Table, key: str) -> None:
    """Show one data set's rows as a table and as curves over the epochs."""
    frame = table_frame(table)
    with st.expander(f"All {len(frame)} rows as numbers", icon=":material/table_rows:") if len(frame) > MOST_ROWS \
            else st.container():
        data_table(frame, width="stretch", height="content")
    if table.printed:
        mark = "" if table.comparable else ("**\\* Not comparable with the measurements here**: fewer images or a "
                                            "smaller budget. ")
        st.caption(f"{mark}Papers report results of their own networks, splits and budgets. Compare a method's gain "
                   "over its own start, and the order of the methods.")
    if table.curves:
        show_curves(table, key)


def show_claim(experiment: Experiment, measure: str) -> None:
    """State the result in one sentence, as the title of the first table's chart."""
    st.markdown(f"##### {headline(experiment.tables[0], measure, experiment.finding.claim).rstrip('.')}")


def chart_words(table: Table) -> str:
    """Return what a chart shows, and of which images."""
    return (f"{table.title}. Points are means, bars are standard deviations over seeds. A triangle at the end of the "
            "axis is a value beyond it.")


def show_experiment() -> None:
    """Show a record: its result in a sentence, the chart, the numbers, the words, then its other tables."""
    left, right = st.columns([3, 1])
    with left:
        experiment = choose_experiment()
    for number, table in enumerate(experiment.tables):
        key = f"results-{experiment.finding.name}-{number}"
        if number:
            st.subheader(table.title)
        with st.container(width=260) if number else right:
            measure = choose_measure(table, key)
        if not number:
            show_claim(experiment, measure)
        show_chart(table, measure, key, "" if number else chart_words(table))
        show_numbers(table, key)
        if not number:
            st.markdown(f"*{experiment.finding.source}.* {experiment.finding.text}")
    if not experiment.tables:
        st.markdown(f"*{experiment.finding.source}.* {experiment.finding.text}")
    with st.expander("Which methods improve retrieval of unseen classes?", icon=":material/summarize:"):
        st.markdown(records.summary())
    show_provenance(experiment.provenance)
    st.caption("Each record has its command, versions and all seeds. The evaluation of your own runs follows the same "
               "protocol.")
    share(list(downloads(experiment)), "results")


def show_curves(table: Table, key: str) -> None:
    """Show a curve over the epochs for each row, averaged over its seeds."""
    names = curve_names([row for rows in table.curves.values() for row in rows])
    if not names or max(map(len, table.curves.values())) < FEWEST_EPOCHS:
        return
    default = next((name for name in CURVES_SHOWN_FIRST if name in names), names[0])
    name = st.selectbox("Curve over the epochs", names, names.index(default), key=f"{key}-curve", width=420,
                        format_func=lambda name: curve_of(name).name)
    if len(table.curves) > MOST_COLORED:
        many_curves(name, table.curves, f"{key}-over-epochs")
    else:
        curve(name, table.curves, f"{key}-over-epochs", height=260 + 20 * len(table.curves))


def downloads(experiment: Experiment) -> Iterator[Download]:
    """Yield the tables in several forms, and the record as JSON."""
    name = experiment.finding.name
    for number, table in enumerate(experiment.tables):
        yield Download(f"{table.title} (CSV)", f"{name}-{number}.csv", "text/csv",
                       lambda table=table: frame_file(number_frame(table)))  # type: ignore[misc]
        yield from table_downloads(f"{name}-{number}", partial(paper_table, table), ("latex", "markdown"), table.title)
    yield Download("Complete record (JSON)", f"{name}.json", "application/json",
                   (records.FOLDER / f"{name}.json").read_bytes)


def draw() -> None:
    """Draw the view."""
    with show_user_errors():
        show_experiment()
