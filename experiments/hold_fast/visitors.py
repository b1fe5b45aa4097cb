"""Visitors without a browser who open pages at the same time, move sliders and leave, and hostile requests between."""

from __future__ import annotations

import asyncio
import atexit
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import numpy as np

from experiments.hold_fast.attempt import Hostility, count_event, note_figure
from experiments.hold_fast.sockets import run_alone
from experiments.visitors import Server, come_and_go, move_all, open_all, started

MOST = 30
MOST_GROWTH = 60.0
"""Megabytes by which the server may grow in all rounds after the first."""
sizes: list[float] = []


@cache
def server() -> Server:
    """Return the server of all rounds."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(started())


def visit(draw: np.random.Generator, _scratch: Path) -> str | None:
    """Let some visitors stay while others come and go; each movement of a slider must change what is drawn."""
    asked = server()
    number, guests = int(draw.integers(2, MOST)), int(draw.integers(1, MOST))

    async def stay() -> tuple[list[float], list[float], int]:
        visitors, opened = await open_all(asked, number)
        (moved, changed), _ = await asyncio.gather(move_all(visitors, 3 * number, int(draw.integers(10**6))),
                                                   come_and_go(asked, guests, max(1, guests // 2)))
        await asyncio.gather(*(visitor.close() for visitor in visitors))
        return opened, moved, changed

    opened, moved, changed = run_alone(stay())
    for _ in range(number + guests):
        count_event()
    sizes.append(asked.megabytes())
    note_figure("visitors", number + guests)
    note_figure("page slowest s", max(opened))
    note_figure("step slowest s", max(moved))
    note_figure("server MB", sizes[-1])
    if changed < 0.9 * len(moved):
        return f"{len(moved) - changed} of {len(moved)} movements of a slider changed nothing"
    if sizes[-1] - sizes[0] > MOST_GROWTH:
        return f"the server grew from {sizes[0]:.0f} to {sizes[-1]:.0f} MB in {len(sizes)} rounds"
    return None


PART = Hostility("visitors", visit, limit=600, seconds=60, goal=600, on_request=True)
