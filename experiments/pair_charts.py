"""The figures of NML's paper from a record of `experiments.pairs`, an SVG file a data set: mprec@K over K at one
width, and mprec@10 over the width d; all methods in both.

    python -m experiments.pair_charts assets/results/nml.json --out assets/readme
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from experiments.pairs import DEPTHS
from pages.parts.kit.drawing import LIGHT, svg
from pages.parts.kit.figures import COLORS, GRAY

UNLEARNT = "no projection"
DASHES = ("none", "7 4", "2 3", "8 3 2 3")
WIDTH, HEIGHT, LEFT, TOP = 360, 250, 48, 40
Points = list[tuple[float, float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("record", type=Path)
    parser.add_argument("--width", type=int, default=64, help="d of the figure over K.")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    for title, found in json.loads(given.record.read_text(encoding="utf-8"))["datasets"].items():
        name = re.sub("[^a-z0-9]+", "-", title.lower()).strip("-")
        path = given.out / f"{given.record.stem}-{name}.svg"
        path.write_text(chart(title, found["rows"], given.width), encoding="utf-8")
        print(path)


def chart(title: str, rows: Mapping[str, Any], width: int) -> str:
    """Both figures of a data set's rows, `METHOD d=WIDTH` each, whose measures are [mean, deviation]."""
    over_depth, over_width = curves(rows, width)
    names = list(over_width)
    widths = sorted({x for points in over_width.values() for x, _ in points})
    drawn = [f'<title>{escape(title)}: mprec@K of {escape(", ".join(names))}</title>',
             '<rect width="100%" height="100%" fill="#ffffff"/>',
             *panel(0, f"{title}: mprec@K in percent, d = {width}", "K", over_depth, names, [1, 10, 20, 30, 40, 50]),
             *panel(WIDTH + 2 * LEFT, "mprec@10 in percent", "d, logarithmic", over_width, names, widths, math.log2)]
    for place, name in enumerate(names):
        x, y = LEFT + place % 4 * 200, TOP + HEIGHT + 62 + place // 4 * 20
        drawn.append(f'<path d="M{x} {y - 4}h30" {stroke(name, names)}/>{text(x + 38, y, name, "start")}')
    return svg(2 * WIDTH + 4 * LEFT, TOP + HEIGHT + 72 + (len(names) - 1) // 4 * 20, LIGHT[0], drawn)


def curves(rows: Mapping[str, Any], width: int) -> tuple[dict[str, Points], dict[str, Points]]:
    """Of each method mprec@K over K at a width, and mprec@10 over the width; without a projection it is the same at
    every width."""
    over_depth: dict[str, Points] = {}
    over_width: dict[str, Points] = {}
    for title, row in rows.items():
        name, _, of = title.partition(" d=")
        if not of or int(of) == width:
            over_depth[name] = [(k, row[f"mprec@{k}"][0]) for k in DEPTHS]
        if of:
            over_width.setdefault(name, []).append((int(of), row["mprec@10"][0]))
    if UNLEARNT in rows:
        ends = sorted(x for points in over_width.values() for x, _ in points)
        over_width[UNLEARNT] = [(end, rows[UNLEARNT]["mprec@10"][0]) for end in (ends[0], ends[-1])]
    return over_depth, over_width


def panel(left: float, title: str, x_title: str, lines: Mapping[str, Points], names: Sequence[str],
          ticks: Sequence[float], scale: Any = float) -> list[str]:
    """One figure: its axes, whose x goes by a scale, and a line a method."""
    first, last = scale(ticks[0]), scale(ticks[-1])
    every = [y for points in lines.values() for _, y in points]
    step = next(one for one in (1, 2, 5, 10, 20) if max(every) - min(every) <= 6 * one or one == 20)
    low, high = math.floor(min(every) / step) * step, math.ceil(max(every) / step) * step

    def across(x: float) -> float:
        return left + LEFT + WIDTH * (scale(x) - first) / max(last - first, 1e-9)

    def up(y: float) -> float:
        return TOP + HEIGHT * (high - y) / max(high - low, 1e-9)

    drawn = [text(left + LEFT, TOP - 16, title, "start", 15), text(left + LEFT + WIDTH / 2, TOP + HEIGHT + 36, x_title)]
    drawn += [f'<path d="M{left + LEFT} {up(value):.1f}h{WIDTH}" stroke="#e2e5e9"/>'
              + text(left + LEFT - 8, up(value) + 4, str(value), "end") for value in range(low, high + 1, step)]
    drawn += [text(across(tick), TOP + HEIGHT + 18, f"{tick:g}") for tick in ticks]
    for name, points in lines.items():
        way = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in points)
        drawn.append(f'<polyline points="{way}" {stroke(name, names)}/>')
    return drawn


def stroke(name: str, names: Sequence[str]) -> str:
    """A method's colour and dash; gray for what needs no training."""
    place = [one for one in names if one != UNLEARNT].index(name) if name != UNLEARNT else 0
    color, dash = (GRAY, "none") if name == UNLEARNT else (COLORS[place % 4], DASHES[(place + place // 4) % 4])
    return f'fill="none" stroke="{color}" stroke-width="2" stroke-dasharray="{dash}"'


def text(x: float, y: float, words: str, anchor: str = "middle", size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(words)}</text>'


if __name__ == "__main__":
    main()
