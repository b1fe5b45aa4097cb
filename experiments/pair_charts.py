"""Draw the figures of NML's paper from a record of `experiments.pairs`.

Each data set becomes one SVG file.

The left figure is mprec@K over K at one width; the right figure is mprec@10 over the width d.

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
from pages.parts.draw.drawing import LIGHT, svg
from pages.parts.draw.figures import COLORS, GRAY

NO_PROJECTION = "no projection"
DASHES = ("none", "7 4", "2 3", "8 3 2 3")
WIDTH, HEIGHT, LEFT, TOP = 360, 250, 48, 40
Points = list[tuple[float, float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record", type=Path)
    parser.add_argument("--width", type=int, default=64, help="width d of the figure over K")
    parser.add_argument("--out", type=Path, required=True, help="the folder to write to")
    options = parser.parse_args()
    for title, dataset in json.loads(options.record.read_text(encoding="utf-8"))["datasets"].items():
        name = re.sub("[^a-z0-9]+", "-", title.lower()).strip("-")
        path = options.out / f"{options.record.stem}-{name}.svg"
        path.write_text(chart(title, dataset["rows"], options.width), encoding="utf-8")
        print(path)


def chart(title: str, rows: Mapping[str, Any], width: int) -> str:
    """Return both figures of a data set as SVG.

    Args:
        title: Title of the data set.
        rows: Measures as [mean, deviation], by row `METHOD d=WIDTH`.
        width: Width d of the figure over K.
    """
    over_depth, over_width = curves(rows, width)
    names = list(over_width)
    widths = sorted({x for points in over_width.values() for x, _ in points})
    drawn = [f'<title>{escape(title)}: mprec@K of {escape(", ".join(names))}</title>',
             '<rect width="100%" height="100%" fill="#ffffff"/>',
             *panel(0, f"{title}: mprec@K in percent, d = {width}", "K", over_depth, names, [1, 10, 20, 30, 40, 50]),
             *panel(WIDTH + 2 * LEFT, "mprec@10 in percent", "d, logarithmic", over_width, names, widths, math.log2)]
    for number, name in enumerate(names):
        x, y = LEFT + number % 4 * 200, TOP + HEIGHT + 62 + number // 4 * 20
        drawn.append(f'<path d="M{x} {y - 4}h30" {stroke(name, names)}/>{text(x + 38, y, name, "start")}')
    return svg(2 * WIDTH + 4 * LEFT, TOP + HEIGHT + 72 + (len(names) - 1) // 4 * 20, LIGHT[0], drawn)


def curves(rows: Mapping[str, Any], width: int) -> tuple[dict[str, Points], dict[str, Points]]:
    """Return each method's points for both charts.

    One chart shows mprec@K over K at a width, the other mprec@10 over the width. The
    features without a projection are a horizontal line over the width.
    """
    over_depth: dict[str, Points] = {}
    over_width: dict[str, Points] = {}
    for title, row in rows.items():
        name, _, row_width = title.partition(" d=")
        if not row_width or int(row_width) == width:
            over_depth[name] = [(k, row[f"mprec@{k}"][0]) for k in DEPTHS]
        if row_width:
            over_width.setdefault(name, []).append((int(row_width), row["mprec@10"][0]))
    if NO_PROJECTION in rows:
        ends = sorted(x for points in over_width.values() for x, _ in points)
        over_width[NO_PROJECTION] = [(end, rows[NO_PROJECTION]["mprec@10"][0]) for end in (ends[0], ends[-1])]
    return over_depth, over_width


def panel(left: float, title: str, x_title: str, lines: Mapping[str, Points], names: Sequence[str],
          ticks: Sequence[float], scale: Any = float) -> list[str]:
    """Return one figure: axes and one line for each method.

    Args:
        left: Left end in pixels.
        title: Title of the figure.
        x_title: Title of the x-axis.
        lines: Points of each method.
        names: All methods, in the order that decides color and dash.
        ticks: Ticks of the x-axis, ascending.
        scale: Maps x to its position on the axis, such as a logarithm.
    """
    first, last = scale(ticks[0]), scale(ticks[-1])
    values = [y for points in lines.values() for _, y in points]
    step = next(size for size in (1, 2, 5, 10, 20) if max(values) - min(values) <= 6 * size or size == 20)
    low, high = math.floor(min(values) / step) * step, math.ceil(max(values) / step) * step

    def across(x: float) -> float:
        return left + LEFT + WIDTH * (scale(x) - first) / max(last - first, 1e-9)

    def up(y: float) -> float:
        return TOP + HEIGHT * (high - y) / max(high - low, 1e-9)

    drawn = [text(left + LEFT, TOP - 16, title, "start", 15), text(left + LEFT + WIDTH / 2, TOP + HEIGHT + 36, x_title)]
    drawn += [f'<path d="M{left + LEFT} {up(value):.1f}h{WIDTH}" stroke="#e2e5e9"/>'
              + text(left + LEFT - 8, up(value) + 4, str(value), "end") for value in range(low, high + 1, step)]
    drawn += [text(across(tick), TOP + HEIGHT + 18, f"{tick:g}") for tick in ticks]
    for name, points in lines.items():
        path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in points)
        drawn.append(f'<polyline points="{path}" {stroke(name, names)}/>')
    return drawn


def stroke(name: str, names: Sequence[str]) -> str:
    """Return a method's color and dash; the features without a projection are gray."""
    number = [other for other in names if other != NO_PROJECTION].index(name) if name != NO_PROJECTION else 0
    color, dash = (GRAY, "none") if name == NO_PROJECTION else (COLORS[number % 4], DASHES[(number + number // 4) % 4])
    return f'fill="none" stroke="{color}" stroke-width="2" stroke-dasharray="{dash}"'


def text(x: float, y: float, content: str, anchor: str = "middle", size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(content)}</text>'


if __name__ == "__main__":
    main()
