"""The ranked methods as a chart: a point for each method and data set, the best method first."""

from __future__ import annotations

import plotly.graph_objects as go

from udml_core.numerics.measures import measure_of
from udml_core.results.benchmark import Benchmark

from ..draw.figures import draw, line_style
from ..results.charts import LEGEND, MARGIN

HEIGHT = 430


def chart_ranked(benchmark: Benchmark, names: list[str], measure: str) -> None:
    """Show the mean and the standard deviation of each method on each data set.

    Args:
        benchmark: The chosen data sets and methods.
        names: The methods in the order of the table.
        measure: The measure.
    """
    figure = go.Figure()
    for number, dataset in enumerate(benchmark.datasets.values()):
        values = {name: dataset.entries[name].summary[measure] for name in names
                  if name in dataset.entries and measure in dataset.entries[name].summary}
        color = line_style(number)["color"]
        figure.add_scatter(x=list(values), y=[mean for mean, _ in values.values()], name=dataset.title, mode="markers",
                           marker={"color": color, "size": 8, "symbol": number},
                           error_y={"array": [deviation for _, deviation in values.values()], "color": color})
    figure.update_layout(height=HEIGHT, margin=MARGIN, showlegend=True, legend=LEGEND, hovermode="x unified")
    # A narrow screen leaves out some of the names, which the points' tooltips and the table have.
    figure.update_xaxes(type="category", categoryorder="array", categoryarray=names, tickangle=-60,
                        tickfont={"size": 11}, title="")
    figure.update_yaxes(title=measure_of(measure).title)
    draw(figure, "benchmark-chart", f"{measure_of(measure).name} of {len(names)} methods on "
         f"{len(benchmark.datasets)} data sets. The first is {names[0]}. The table below lists all values.")
