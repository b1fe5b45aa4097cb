"""What the project measured with its own commands, beside what the papers print."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from pages.parts.base.address import choice_from_address, write_address
from pages.parts.base.user_errors import show_user_errors
from pages.parts.kit.downloads import Download, share
from pages.parts.kit.figures import (
    COLORS,
    CURVE_WORDS,
    GRAY,
    MEASURE_WORDS,
    curve,
    curve_names,
    draw,
    line_style,
    width_axis,
)
from udml_core.results import records as experiments
from udml_core.results.records import Experiment, Spread, Table

FIRST = ("knn@200", "mprec@10", "recall@1", "purity")  # what the chart shows, where it was measured
NOT_CHARTED = ("seconds", "width")
WIDTH = re.compile(r"(.+) d=(\d+)")  # a row of a method at one width


def chosen_experiment() -> Experiment:
    """The record that is shown; kept in the address."""
    found = {one.name: one for one in experiments.findings()}
    usual = next(iter(found))
    name = st.selectbox("Experiment", list(found), list(found).index(choice_from_address("record", found, usual)),
                        key="results-record", format_func=lambda one: found[one].title)
    write_address("record", name, usual)
    return experiments.read(found[name])


def show(table: Table, key: str) -> None:
    """One data set's rows: a measure as a chart, all as a table, and the curves over the epochs."""
    st.subheader(table.title)
    measures = [one for one in table.measures() if one not in NOT_CHARTED] or table.measures()
    first = next((one for one in FIRST if one in measures), measures[0])
    measure = measures[0]
    if len(measures) > 1:
        measure = st.selectbox("Measure", measures, measures.index(first), key=f"{key}-measure", width=260,
                               format_func=in_words)
    if any(WIDTH.fullmatch(name) for name in table.rows):
        over_width(table, measure, f"{key}-width")
    else:
        dots(table, measure, f"{key}-dots")
    st.dataframe(frame(table), width="stretch", height="content")
    if table.printed:
        st.caption(("" if table.comparable else "**\\* Not comparable with what was measured here**: fewer images, or "
                    "a smaller budget. ") + "What papers print is of their own networks, splits and budgets: compare "
                   "what a method gains over its own start, and the order of methods.")
    if table.curves:
        over_epochs(table, key)


def in_words(measure: str) -> str:
    usual = measure if "_" in measure or measure.startswith("mprec") else measure[:1].upper() + measure[1:]
    return MEASURE_WORDS.get(measure, usual)


def dots(table: Table, measure: str, key: str) -> None:
    """Each row's mean and standard deviation of a measure, and what papers print as hollow diamonds."""
    names = list({**table.beside, **table.rows, **table.printed})
    figure = go.Figure()
    for title, rows, color in (("untrained", table.beside, GRAY), ("trained", table.rows, COLORS[0])):
        inside = {name: row[measure] for name, row in rows.items() if measure in row}
        if inside:
            figure.add_scatter(x=[mean for mean, _ in inside.values()], y=list(inside), name=title, mode="markers",
                               marker={"color": color, "size": 10},
                               error_x={"array": [deviation for _, deviation in inside.values()], "color": color})
    printed = {name: row[measure] for name, row in table.printed.items() if measure in row}
    if printed:
        figure.add_scatter(x=list(printed.values()), y=list(printed), mode="markers",
                           name="printed in the paper" + ("" if table.comparable else ", not comparable"),
                           marker={"color": COLORS[1], "size": 11, "symbol": "diamond-open", "line": {"width": 2}})
    figure.update_layout(height=110 + 26 * len(names), margin={"l": 8, "r": 8, "t": 8, "b": 8}, showlegend=True,
                         legend={"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0})
    figure.update_yaxes(categoryorder="array", categoryarray=names[::-1], automargin=True, type="category")
    figure.update_xaxes(title=in_words(measure))
    best = max(((row[measure][0], name) for name, row in table.rows.items() if measure in row), default=(0.0, "none"))
    draw(figure, key, f"{in_words(measure)} of {len(names)} rows, mean and standard deviation; the highest of those "
         f"that were trained is {best[1]} with {best[0]:.4g}. The table below holds all.")


def over_width(table: Table, measure: str, key: str) -> None:
    """A line a method over the width of its embedding, mean and standard deviation; dotted what has one width only."""
    figure = go.Figure()
    lines: dict[str, list[tuple[int, Spread]]] = {}
    for name, row in table.rows.items():
        found = WIDTH.fullmatch(name)
        if found and measure in row:
            lines.setdefault(found[1], []).append((int(found[2]), row[measure]))
        elif measure in row:
            figure.add_hline(row[measure][0], line={"dash": "dot", "color": GRAY}, annotation_text=name)
    for place, (name, points) in enumerate(lines.items()):
        style = line_style(place)
        figure.add_scatter(x=[width for width, _ in points], y=[mean for _, (mean, _) in points], name=name,
                           mode="lines+markers", line=style, error_y={"array": [spread for _, (_, spread) in points],
                                                                      "color": style["color"]})
    figure.update_layout(height=420, margin={"l": 8, "r": 8, "t": 8, "b": 8}, showlegend=True, hovermode="x unified",
                         legend={"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0})
    width_axis(figure, (width for points in lines.values() for width, _ in points))
    figure.update_xaxes(title="Width d")
    figure.update_yaxes(title=in_words(measure))
    draw(figure, key, f"{in_words(measure)} over the width: " + "; ".join(
        f"{name} {points[0][1][0]:.1f} at {points[0][0]} to {points[-1][1][0]:.1f} at {points[-1][0]}"
        for name, points in lines.items()))


def frame(table: Table) -> pd.DataFrame:
    """The whole table as text, what needs no training on top and a paper's figures below each row that has some."""
    measures = table.measures()
    measured = {**table.beside, **table.rows}
    lines: dict[str, list[str]] = {}
    for name in {**measured, **table.printed}:
        if name in measured:
            lines[name] = [written(measured[name].get(measure), measure) for measure in measures]
        if name in table.printed:
            values = [table.printed[name].get(measure) for measure in measures]
            title = f"{name}, printed" if table.comparable else f"{name}, printed*"
            lines[title] = ["" if one is None else f"{one:g}" for one in values]
    return pd.DataFrame.from_dict(lines, orient="index", columns=[in_words(one) for one in measures])


def written(value: Spread | None, measure: str) -> str:
    """A mean, with its deviation where seeds differ."""
    if value is None:
        return ""
    mean, deviation = value
    if measure in ("seconds", "width", "epoch", "size") or abs(mean) >= 1000:
        return f"{mean:,.0f}"
    return f"{mean:.1f} ± {deviation:.1f}" if deviation >= 0.05 else f"{mean:.1f}"


def over_epochs(table: Table, key: str) -> None:
    """A curve of each row, the mean over its seeds."""
    names = curve_names([row for rows in table.curves.values() for row in rows])
    if not names or max(map(len, table.curves.values())) < 3:
        return
    usual = next((one for one in ("sample knn@200", "sample map@r") if one in names), names[0])
    name = st.selectbox("Over the epochs", names, names.index(usual), key=f"{key}-curve", width=420,
                        format_func=lambda one: CURVE_WORDS.get(one, in_words(one)))
    curve(name, table.curves, f"{key}-over-epochs", height=260 + 20 * len(table.curves))


def how(experiment: Experiment) -> None:
    """How to measure it again."""
    with st.expander("How it was measured", icon=":material/terminal:"):
        for name, value in experiment.made.items():
            if name == "command":
                st.code(value, language="bash", wrap_lines=True)
            else:
                st.markdown(f"**{name.capitalize()}**: {value}")


def downloads(experiment: Experiment) -> Sequence[Download]:
    name = experiment.finding.name
    tables = [Download(f"{table.title} (CSV)", f"{name}-{place}.csv", "text/csv",
                       lambda table=table: frame(table).to_csv().encode())  # type: ignore[misc]
              for place, table in enumerate(experiment.tables)]
    return [*tables, Download("The whole record (JSON)", f"{name}.json", "application/json",
                              (experiments.FOLDER / f"{name}.json").read_bytes)]


st.title("Results")
st.caption("What this project measured with its own commands, where papers print figures beside them. Each is a record "
           "with its command, versions and every seed; a run of your own is judged by the same protocol.")
with show_user_errors():
    experiment = chosen_experiment()
    st.markdown(f"*{experiment.finding.source}.* {experiment.finding.says}")
    for place, one in enumerate(experiment.tables):
        show(one, f"results-{experiment.finding.name}-{place}")
    how(experiment)
    share(list(downloads(experiment)), "results")
