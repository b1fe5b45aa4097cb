"""How an image's own other view stands against all others, in pictures and words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from pages.parts.kit.figures import COLORS, DASHES, GRAY, draw, table_behind
from udml_core.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.exploration.instances import Others, Softmax

RANKED, LISTED = 40, 200
OWN, SAME, OTHER = COLORS[2], COLORS[0], COLORS[1]


@dataclass(frozen=True)
class Standing:
    """The softmax of an image over others at one moment. when: that moment in words. same (c,): which of the others are
    of its class; None without classes."""

    when: str
    others: Others
    softmax: Softmax
    same: Array | None

    @property
    def parts(self) -> dict[str, float]:
        """What the own other view, its class and all others hold, in percent; together 100."""
        shares = self.softmax.shares
        if self.same is None:
            return {"own other view": 100 * self.softmax.own, "others": 100 * float(shares.sum())}
        return {"own other view": 100 * self.softmax.own, "others of its class": 100 * float(shares[self.same].sum()),
                "others of other classes": 100 * float(shares[~self.same].sum())}


def share_picture(standings: list[Standing]) -> None:
    """What the own other view, its class and the rest hold of the sum, a bar a moment."""
    figure = go.Figure()
    colors = {"own other view": OWN, "others of its class": SAME}
    for name in standings[0].parts:
        values = [one.parts[name] for one in standings]
        figure.add_bar(x=values, y=[one.when for one in standings], orientation="h", name=name,
                       text=[f"{value:.0f} %" if value >= 6 else "" for value in values], textfont={"color": "white"},
                       insidetextanchor="middle", textangle=0,
                       marker={"color": colors.get(name, OTHER),
                               "pattern": {"shape": "" if name in colors else "/", "solidity": 0.15,
                                           "bgcolor": colors.get(name, OTHER), "fgcolor": "rgba(255,255,255,0.4)"}})
    figure.update_layout(title={"text": "Shares of the sum D, %", "font": {"size": 14}}, barmode="stack", height=260,
                         margin={"l": 8, "r": 8, "t": 36, "b": 8}, bargap=0.35,
                         legend={"orientation": "h", "y": -0.15, "traceorder": "normal"})
    figure.update_xaxes(range=[0, 100])
    figure.update_yaxes(autorange="reversed")
    draw(figure, "instance-shares", "Shares of the sum. " + " ".join(
        f"{one.when.capitalize()}: " + ", ".join(f"{name} {value:.1f} %" for name, value in one.parts.items()) + "."
        for one in standings))


def rank_picture(standings: list[Standing]) -> None:
    """The shares of the nearest others by rank; who is of the class is a full mark, who is not a cross."""
    figure = go.Figure()
    for one, dash, color in zip(standings, (DASHES[2], DASHES[0]), (GRAY, SAME), strict=True):
        shares = 100 * one.softmax.shares[:RANKED]
        same = np.ones(len(shares), dtype=bool) if one.same is None else one.same[:RANKED]
        figure.add_scatter(x=np.arange(1, len(shares) + 1), y=shares, name=one.when, mode="lines+markers",
                           line={"dash": dash, "color": color},
                           marker={"size": 7, "symbol": np.where(same, "circle", "x-thin"),
                                   "line": {"width": np.where(same, 0, 2), "color": OTHER}})
    figure.update_layout(title={"text": "Share of each of the nearest others, %", "font": {"size": 14}}, height=280,
                         margin={"l": 8, "r": 8, "t": 36, "b": 8}, legend={"orientation": "h", "y": -0.42})
    figure.update_xaxes(title="rank by cosine" + ("" if standings[0].same is None else
                                                  " (● of its class, × of another)"), range=[0, RANKED + 1])
    figure.update_yaxes(rangemode="tozero", tickformat=".2~g")
    draw(figure, "instance-ranks", f"Shares of the nearest {RANKED} others: " + "; ".join(
        f"{one.when} from {100 * one.softmax.shares[0]:.2g} % for the first to "
        f"{100 * one.softmax.shares[:RANKED][-1]:.2g} % for the last" for one in standings) + ".")


def standing_words(before: Standing, after: Standing) -> str:
    """Where the image stands, and against whom."""
    now, then = after.softmax, before.softmax
    words = (f"Its own other view holds **{100 * now.own:.1f} %** ({before.when} {100 * then.own:.1f} %). The "
             f"{len(now.shares):,} others weigh as much as **{now.competitors:,.1f}** equally near ones would "
             f"({before.when} {then.competitors:,.1f}).")
    if after.same is None:
        return words
    weight = after.parts["others of its class"] / max(100 * (1 - now.own), 1e-12)
    return (f"{words} Of what the others hold, **{100 * weight:.0f} %** lies with images of its own class: a loss that "
            "is told of no classes pushes them away with the rest.")


def standing_table(dataset: Dataset, standings: list[Standing]) -> None:
    """The nearest others with their cosines and shares."""
    parts = [pd.DataFrame({
        f"{one.when.capitalize()}: image": [dataset.caption(int(index)) for index in one.others.positions[:LISTED]],
        f"Cosine {one.when}": one.others.cosines[:LISTED].round(4),
        f"Share {one.when}, %": (100 * one.softmax.shares[:LISTED]).round(4)}) for one in standings]
    table_behind(f"The nearest {min(LISTED, len(standings[0].others.positions))} as a table", pd.concat(parts, axis=1))
