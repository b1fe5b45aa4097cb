"""Measure the app with up to thirty visitors at once, of whom a few use a real browser.

    python -m experiments.visitors --out assets/results/visitors.json
    python -m experiments.visitors --numbers --guests 0 --minutes 60 --out assets/results/visitors-hour.json

A visitor opens the view Clusters of an example and moves ε. Seconds depend on what else the machine does; processor
seconds of the server do not. The record also has the server's memory while sessions come and go, and over many steps.
The second command measures only the steps, spread over an hour.
"""

from __future__ import annotations

import asyncio
import os
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any

import psutil
from playwright.sync_api import sync_playwright

from experiments.hold_fast.sockets import Visitor, run_alone
from experiments.real_server import FLAGS, find_browser, serving
from experiments.recording import provenance, record_parser, write_record

PAGE, QUERY = "explore", "tool=clusters&run=20261122-120000-rpml-digits"
NUMBERS = (1, 6, 12, 30)
BROWSERS = 2
"""Visitors with a real browser."""
STEPS = 10
"""Movements of each visitor while all move."""
MOVERS = 12
"""Visitors who move ε while memory is measured."""
TENTHS = 10
GUESTS, MEMORY = "Memory while guests come and go", f"Memory while {MOVERS} visitors move ε"
"""Tables of the server's memory."""
PICTURE = "canvas"
WARM = 600.0
"""Seconds that the server has to import everything."""


class Server:
    """The server that is measured.

    Attributes:
        url: Its address.
    """

    def __init__(self, url: str, number: int) -> None:
        self.url = url
        self._process = psutil.Process(number)

    def seconds(self) -> float:
        """Return the processor seconds that it has used."""
        times = self._process.cpu_times()
        return float(times.user + times.system)

    def megabytes(self) -> float:
        """Return its memory."""
        return float(self._process.memory_info().rss / 1e6)

    def open_files(self) -> set[str]:
        """Return the temporary files that it holds open, also those without a name."""
        links = set()
        for number in Path(f"/proc/{self._process.pid}/fd").iterdir():
            with suppress(OSError):  # closed meanwhile
                links.add(os.readlink(number))
        return {link for link in links if link.endswith("(deleted)") or link.startswith(tempfile.gettempdir())}

    def settle(self, quiet: float = 2.0) -> None:
        """Wait until it does nothing any more."""
        deadline = time.monotonic() + WARM
        while time.monotonic() < deadline:
            before = self.seconds()
            time.sleep(quiet)
            if self.seconds() - before < 0.05 * quiet:
                return


@contextmanager
def started() -> Iterator[Server]:
    """Start a server of its own, without runs but the examples, and yield it warm."""
    with tempfile.TemporaryDirectory() as home:
        environment = os.environ | {"UDML_CACHE": f"{home}/cache", "UDML_RUNS": f"{home}/runs", "UDML_EXAMPLES": "1"}
        with serving("serve.py", environment) as (url, process):
            server = Server(url, process.pid)
            server.settle()
            run_alone(come_and_go(server, 1, 1))
            server.settle()
            yield server


def choose_value(draw: random.Random) -> Callable[[dict[str, Any]], float]:
    """Return how to choose another value of a slider, given its data."""
    def choose(data: dict[str, Any]) -> float:
        steps = round((data["high"] - data["low"]) / data["step"])
        values = (data["low"] + data["step"] * draw.randrange(steps + 1) for _ in range(1000))
        return float(next(value for value in values if abs(value - data["value"]) > data["step"] / 2))

    return choose


async def move_all(visitors: list[Visitor], steps: int, seed: int = 0, lasting: float = 0.0
                   ) -> tuple[list[float], int]:
    """Let visitors move ε again and again at the same time.

    Args:
        visitors: The visitors.
        steps: Movements of all together; the numbers of two visitors differ by at most one.
        seed: Seed of the values that they choose.
        lasting: Seconds over which each visitor spreads its movements; it does not wait if they take longer.

    Returns:
        The seconds of each movement, and the number of movements that changed what the page draws.
    """
    draw, began = random.Random(seed), time.monotonic()

    async def move(place: int, visitor: Visitor) -> list[tuple[float, bool]]:
        moves, own = list[tuple[float, bool]](), (steps + place) // len(visitors)
        for number in range(own):
            due = began + lasting * (number + place / len(visitors)) / own
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            before = dict(visitor.pictures.drawn)
            seconds = await visitor.move(choose_value(draw), epsilon_of(visitor))
            moves.append((seconds, visitor.pictures.drawn != before))
        return moves

    moves = [move for each in await asyncio.gather(*map(move, range(len(visitors)), visitors)) for move in each]
    return [seconds for seconds, _ in moves], sum(changed for _, changed in moves)


def epsilon_of(visitor: Visitor) -> int:
    """Return the position of the slider ε among a page's sliders."""
    return next(number for number, name in enumerate(visitor.pictures.sliders) if name.endswith("epsilon"))


async def open_all(server: Server, number: int) -> tuple[list[Visitor], list[float]]:
    """Let visitors open the page at the same time; return them and the seconds of each."""
    visitors = [Visitor(server.url) for _ in range(number)]
    return visitors, list(await asyncio.gather(*(visitor.open(PAGE, QUERY) for visitor in visitors)))


async def come_and_go(server: Server, number: int, together: int) -> None:
    """Let visitors open the page, move ε once and leave, some of them together."""
    for start in range(0, number, together):
        visitors, _ = await open_all(server, min(together, number - start))
        await move_all(visitors, len(visitors), start)
        await asyncio.gather(*(visitor.close() for visitor in visitors))


def browse(url: str, number: int, seconds: list[float]) -> None:
    """Open the page in real browsers at the same time, and add the seconds until each draws the map."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=FLAGS)
        pages = [browser.new_context().new_page() for _ in range(number)]
        began = time.monotonic()
        for page in pages:
            page.goto(f"{url}/{PAGE}?{QUERY}", wait_until="commit", timeout=240_000)
        for page in pages:
            page.wait_for_selector(PICTURE, timeout=240_000)
            seconds.append(time.monotonic() - began)
        browser.close()


def measure(server: Server, number: int) -> dict[str, float]:
    """Measure visits of a number of visitors at once, a few with a browser, then movements of as many without one."""
    browsers, seen = min(BROWSERS, number - 1) if number > 1 else 0, list[float]()
    browsing = threading.Thread(target=browse, args=(server.url, browsers, seen))
    before = server.megabytes()
    if browsers:
        browsing.start()

    async def visit() -> dict[str, float]:
        began = server.seconds()
        visitors, opened = await open_all(server, number - browsers)
        if browsers:
            await asyncio.to_thread(browsing.join)
        used = server.seconds() - began
        held = server.megabytes() - before
        visitors += (await open_all(server, browsers))[0]  # in place of the browsers, which have closed
        row = {"first picture p50 s": median(opened + seen), "first picture slowest s": max(opened + seen),
               "processor s per visitor": used / number, "MB per session": held / number}
        row |= await measure_steps(server, visitors, STEPS * number)
        await asyncio.gather(*(visitor.close() for visitor in visitors))
        return row | {"kB per session": sum(visitor.bytes for visitor in visitors) / number / 1e3}

    row = run_alone(visit())
    server.settle()
    return rounded(row) | {"browsers": browsers}


async def measure_steps(server: Server, visitors: list[Visitor], steps: int, parts: int = 1,
                        after: Callable[[int], None] = lambda _steps: None, lasting: float = 0.0) -> dict[str, float]:
    """Measure movements of visitors.

    Args:
        server: The server.
        visitors: The visitors, who move at the same time.
        steps: Movements of all together.
        parts: Number of parts into which the movements are divided.
        after: Called with the number of movements so far after each part.
        lasting: Seconds over which the movements are spread.
    """
    began, moved, changed = server.seconds(), list[float](), 0
    for part in range(parts):
        seconds, pictures = await move_all(visitors, (part + 1) * steps // parts - part * steps // parts, part,
                                           lasting / parts)
        moved += seconds
        changed += pictures
        after(len(moved))
    return {"steps": len(moved), "step p50 s": median(moved), "step slowest s": max(moved),
            "processor s per step": (server.seconds() - began) / len(moved),
            "steps that changed the picture": changed / len(moved)}


async def hold(server: Server, steps: int, lasting: float) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    """Let visitors move ε for long.

    Args:
        server: The server.
        steps: Movements of all visitors together.
        lasting: Seconds over which they are spread.

    Returns:
        The measures of the movements, and the server's memory after each tenth of them, as rows of a table.
    """
    visitors, _ = await open_all(server, MOVERS)
    sizes = {}
    row = await measure_steps(server, visitors, steps, TENTHS,
                              lambda made: sizes.update({f"{made:,} steps": memory_row(server)}), lasting)
    await asyncio.gather(*(visitor.close() for visitor in visitors))
    return rounded(row), sizes


def welcome(server: Server, guests: int, together: int = 20) -> dict[str, dict[str, float]]:
    """Let guests come and go in groups; return the server's memory after each group, as rows of a table."""
    sizes = {"0 guests": memory_row(server)}
    for start in range(0, guests, together):
        group = min(together, guests - start)
        run_alone(come_and_go(server, group, group))
        sizes[f"{start + group} guests"] = memory_row(server)
    return sizes


def memory_row(server: Server) -> dict[str, float]:
    return {"server MB": round(server.megabytes(), 1)}


def rounded(row: dict[str, float]) -> dict[str, float]:
    return {title: round(value, 3) for title, value in row.items()}


def main() -> None:
    parser = record_parser(__doc__, required=False)
    parser.add_argument("--numbers", type=int, nargs="*", default=NUMBERS, help="visitors at once")
    parser.add_argument("--guests", type=int, default=200, help="visitors who come and go")
    parser.add_argument("--steps", type=int, default=5000, help="movements of sliders while memory is measured")
    parser.add_argument("--minutes", type=float, default=0.0, help="time over which these movements are spread")
    options = parser.parse_args()
    with started() as server:
        rows = {}
        for number in options.numbers:
            rows[f"{number} visitors"] = measure(server, number)
            print(number, rows[f"{number} visitors"], flush=True)
        welcomed = welcome(server, options.guests)
        print(welcomed, flush=True)
        name = f"{MOVERS} visitors, {options.steps:,} steps"
        began = time.monotonic()
        rows[name], held = run_alone(hold(server, options.steps, options.minutes * 60))
        rows[name]["minutes"] = round((time.monotonic() - began) / 60, 1)
        print(name, rows[name], held, flush=True)
    if options.out:
        protocol = (f"view Clusters of an example on a warm server of {os.cpu_count()} processor cores, which the "
                    f"visitors share; a visit ends with the map, up to {BROWSERS} visitors use headless Chromium; "
                    f"then {STEPS} movements of ε by each of as many visitors without a browser at the same time; then "
                    f"{options.guests} guests in groups of 20, and {options.steps:,} movements by {MOVERS} visitors, "
                    f"spread over {options.minutes:g} minutes")
        guests = {GUESTS: {"rows": welcomed}} if options.guests else {}
        write_record(options.out, provenance("visitors") | {
            "protocol": protocol, "guests": options.guests, "steps": options.steps,
            "datasets": {"Visitors at once": {"rows": rows}} | guests | {MEMORY: {"rows": held}}})


if __name__ == "__main__":
    main()
