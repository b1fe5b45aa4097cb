"""Charts and texts on the softmax of an image's other view against other images."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from udml_core.base.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.exploration.instances import RankedImages, Softmax

from ..draw.figures import DASHES, draw, titled
from ..draw.palette import AFTER, BEFORE, HIT, MISS, QUERY
from ..draw.tables import table_behind

MOST_RANKS, MOST_ROWS = 40, 200
OWN_COLOR, SAME_COLOR, OTHER_COLOR = QUERY, HIT, MISS
OWN, SAME, OTHER, OTHERS = "its other view", "same class", "other classes", "other images"


@dataclass(frozen=True)
class Competition:
    """The softmax of an image's other view against other images.

    Attributes:
        when: The embedding in words, such as `after training`.
        others: The other images, (c), by cosine.
        softmax: The shares of the other view and of the other images.
        same: Whether each of the other images has the image's class, (c,); None without classes.
    """

    when: str
    others: RankedImages
    softmax: Softmax
    same: Array | None

    @property
    def parts(self) -> dict[str, float]:
        """Percent of the softmax: the other view, images of the same class, and the rest."""
        shares = self.softmax.shares
        if self.same is None:
            return {OWN: 100 * self.softmax.own, OTHERS: 100 * float(shares.sum())}
        return {OWN: 100 * self.softmax.own, SAME: 100 * float(shares[self.same].sum()),
                OTHER: 100 * float(shares[~self.same].sum())}


def share_chart(competitions: list[Competition]) -> None:
    """Show the shares of the softmax as one stacked bar for each embedding."""
    figure = go.Figure()
    colors = {OWN: OWN_COLOR, SAME: SAME_COLOR}
    for name in competitions[0].parts:
        values = [competition.parts[name] for competition in competitions]
        figure.add_bar(x=values, y=[competition.when for competition in competitions], orientation="h", name=name,
                       text=[f"{value:.1f} %" if value >= 6 else "" for value in values],
                       textfont={"color": "#0b1220" if name == OWN else "white"},
                       insidetextanchor="middle", textangle=0,
                       marker={"color": colors.get(name, OTHER_COLOR),
                               "pattern": {"shape": "" if name in colors else "/", "solidity": 0.15,
                                           "bgcolor": colors.get(name, OTHER_COLOR),
                                           "fgcolor": "rgba(255,255,255,0.4)"}})
    titled(figure, "Softmax: similarity as shares of 100 %", 230, barmode="stack", bargap=0.35,
           legend={"orientation": "h", "y": -0.4, "traceorder": "normal"})
    figure.update_xaxes(title="share, %", range=[0, 100], tickvals=[0, 25, 50, 75, 100])
    figure.update_yaxes(title="embedding", autorange="reversed")
    draw(figure, "instance-shares", "Shares of the softmax. " + " ".join(
        f"{competition.when.capitalize()}: "
        + ", ".join(f"{name} {value:.1f} %" for name, value in competition.parts.items()) + "."
        for competition in competitions))


def rank_chart(competitions: list[Competition]) -> None:
    """Show the nearest images' shares by rank; markers distinguish the same class."""
    figure = go.Figure()
    for competition, dash, color in zip(competitions, (DASHES[2], DASHES[0]), (BEFORE, AFTER), strict=True):
        shares = 100 * competition.softmax.shares[:MOST_RANKS]
        same = np.ones(len(shares), dtype=bool) if competition.same is None else competition.same[:MOST_RANKS]
        figure.add_scatter(x=np.arange(1, len(shares) + 1), y=shares, name=competition.when, mode="lines+markers",
                           line={"dash": dash, "color": color},
                           marker={"size": 7, "symbol": np.where(same, "circle", "x-thin"),
                                   "line": {"width": np.where(same, 0, 2), "color": OTHER_COLOR}})
    titled(figure, "Shares of the nearest images", 280, legend={"orientation": "h", "y": -0.42})
    figure.update_xaxes(title="rank by cosine" + ("" if competitions[0].same is None else
                                                  " (● same class, × another class)"), range=[0, MOST_RANKS + 1])
    figure.update_yaxes(title="share, %", rangemode="tozero", tickformat=".2~g")
    draw(figure, "instance-ranks", f"Shares of the nearest {MOST_RANKS} images: " + "; ".join(
        f"{competition.when} from {100 * competition.softmax.shares[0]:.1f} % for the first to "
        f"{100 * competition.softmax.shares[:MOST_RANKS][-1]:.1f} % for the last"
        for competition in competitions) + ".")


def competition_summary(before: Competition, after: Competition) -> str:
    """Describe the other view's share and the number of effective competitors."""
    now, then = after.softmax, before.softmax
    share, rivals = f" ({before.when} {100 * then.own:.1f} %)", f" ({before.when} {then.competitors:,.1f})"
    if np.array_equal(now.shares, then.shares):
        share = rivals = ""  # nothing was trained
    words = (f"The image's other view has **{100 * now.own:.1f} %** of the softmax{share}. "
             f"The effective number of competitors is **{now.competitors:,.1f}** of {len(now.shares):,} other "
             f"images{rivals}.")
    if after.same is None:
        return words
    weight = after.parts[SAME] / max(100 * (1 - now.own), 1e-12)
    return (f"{words} Of the other images' share, **{100 * weight:.1f} %** belongs to images of the same class, which "
            "instance discrimination pushes away like all others.")


def competition_table(dataset: Dataset, competitions: list[Competition]) -> None:
    """Show the nearest images with their cosines and shares."""
    parts = [pd.DataFrame({
        f"{competition.when.capitalize()}: image": [
            dataset.caption(int(index)) for index in competition.others.indices[:MOST_ROWS]],
        f"Cosine {competition.when}": competition.others.cosines[:MOST_ROWS].round(3),
        f"Share {competition.when}, %": (100 * competition.softmax.shares[:MOST_ROWS]).round(1)})
        for competition in competitions]
    count = min(MOST_ROWS, len(competitions[0].others.indices))
    table_behind(f"The {count} nearest images as a table", pd.concat(parts, axis=1))
