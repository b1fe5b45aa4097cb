"""Repeat the hostile review with random seeds until the time is spent.

    python -m experiments.hold_fast --minutes 15
    python -m experiments.hold_fast --part kills --seed 4711 --tries 1
    python -m experiments.hold_fast --goals --seed 18 --log hold-fast.jsonl --out assets/results/hold-fast.json

The second line repeats one broken case of the table. The third goes on where an interrupted campaign stopped, and
repeats what broke in it. The exit code is 1 if something broke.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import random
import secrets
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

import experiments.hold_fast as package
from experiments.hold_fast.attempt import Hostility, Outcome, attempt_once, shared_folder
from experiments.hold_fast.forked import prepare
from experiments.recording import provenance, record_parser, write_record

MEMORY = Path("/dev/shm")
"""A file system in memory, where syncing costs nothing; a killed process loses no more there than on a disk."""
NEEDED = 2e9
"""Free bytes that the campaign needs there."""


@dataclass
class Tally:
    """What the attempts at a part came to.

    Attributes:
        outcomes: The last outcome of each seed.
        mended: Seeds that broke the app at first and no longer do.
        seconds: Seconds that the attempts took.
    """

    outcomes: dict[int, Outcome] = field(default_factory=dict)
    mended: set[int] = field(default_factory=set)
    seconds: float = 0.0

    def add(self, seed: int, outcome: Outcome) -> None:
        """Add the outcome of a seed, which replaces an earlier one."""
        if outcome.broken is None and seed in self.broken:
            self.mended.add(seed)
        self.outcomes[seed] = outcome

    @property
    def tried(self) -> int:
        return len(self.outcomes)

    @property
    def events(self) -> int:
        return sum(outcome.events for outcome in self.outcomes.values())

    @property
    def broken(self) -> dict[int, str]:
        return {seed: outcome.broken for seed, outcome in self.outcomes.items() if outcome.broken is not None}


def main() -> int:
    """Run the campaign and print its table."""
    parser = record_parser(__doc__, required=False)
    parser.prog = "python -m experiments.hold_fast"
    known = {part.name: part for part in collect_parts()}
    parser.add_argument("--minutes", type=float, default=float("inf"), help="time for all parts together")
    parser.add_argument("--tries", type=int, help="largest number of attempts at each part")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6), help="seed of the first attempts")
    parser.add_argument("--part", nargs="+", action="extend", choices=sorted(known), help="only these parts")
    parser.add_argument("--goals", action="store_true", help="end each part at its goal of hostile events")
    parser.add_argument("--log", type=Path, help="file of one line an attempt; attempts that held in it count")
    options = parser.parse_args()
    if not options.goals and options.tries is None and options.minutes == float("inf"):
        parser.error("give --minutes, --tries or --goals")
    if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > NEEDED:
        tempfile.tempdir = str(MEMORY)
    os.environ["UDML_CACHE"] = str(shared_folder("cache"))
    os.environ["UDML_RUNS"] = str(shared_folder("runs"))
    os.environ |= {"UDML_MAPS": "0", "UDML_EXAMPLES": "0", "OMP_NUM_THREADS": "1"}
    prepare()
    chosen = [part for part in known.values() if (part.name in options.part if options.part else not part.on_request)]
    random.Random(options.seed).shuffle(chosen)  # a short campaign does not reach every part
    tallies = read_log(options.log) if options.log and options.log.exists() else {}
    run_campaign(chosen, options.seed, options.minutes * 60, options.tries, options.goals, options.log, tallies)
    print(table(tallies, options.seed))
    if options.out:
        write_record(options.out, record_of(tallies, options.seed))
    return int(any(tally.broken for tally in tallies.values()))


def record_of(tallies: dict[str, Tally], seed: int) -> dict[str, Any]:
    """Return the record of a campaign.

    Args:
        tallies: What the attempts came to, by part.
        seed: Seed of the first attempt at each part.
    """
    rows = {name: {"events": tally.events, "tried": tally.tried, "held": tally.tried - len(tally.broken),
                   "broken": len(tally.broken), "mended": len(tally.mended)} for name, tally in tallies.items()}
    datasets = {"Hostile attempts": {"rows": rows}}
    for name, tally in tallies.items():
        measured = [outcome.figures for _, outcome in sorted(tally.outcomes.items()) if outcome.figures]
        for kind in dict.fromkeys(key for figures in measured for key in figures if key.startswith("killed ")):
            rows[name][kind] = int(sum(figures.get(kind, 0) for figures in measured))
        measured = [kept for figures in measured if (kept := {key: value for key, value in figures.items()
                                                              if not key.startswith("killed ")})]
        if len(measured) > 1:
            half = len(measured) // 2
            datasets[f"Measured by {name}"] = {"rows": {"first half": _medians(measured[:half]),
                                                        "second half": _medians(measured[half:])}}
    return provenance("hold_fast") | {
        "protocol": f"each attempt has its own seed, {seed} and on; events: kills, power cuts, damaged files, stops, "
                    "opened pages or bad inputs; mended: attempts that broke in this campaign, and held when "
                    "they were repeated after a change; a log collects the attempts of several calls",
        "seed": seed, "datasets": datasets}


def _medians(figures: list[dict[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for each in figures for name in each)
    return {name: round(statistics.median(each[name] for each in figures if name in each), 2) for name in names}


def collect_parts() -> list[Hostility]:
    """Return the parts of all modules of this package: each names one in PART, or several in PARTS."""
    parts: list[Hostility] = []
    for name in sorted(module.name for module in pkgutil.iter_modules(package.__path__)):
        if name != "__main__":
            module = importlib.import_module(f"{package.__name__}.{name}")
            parts += [*getattr(module, "PARTS", ()), *([module.PART] if hasattr(module, "PART") else [])]
    return parts


def read_log(path: Path) -> dict[str, Tally]:
    """Read the attempts of an interrupted campaign."""
    tallies: dict[str, Tally] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        tally = tallies.setdefault(row["part"], Tally())
        tally.add(row["seed"], Outcome(row["broken"], row["events"], row["figures"]))
        tally.seconds += row["seconds"]
    return tallies


def run_campaign(parts: list[Hostility], seed: int, seconds: float, tries: int | None, goals: bool = False,
                 log: Path | None = None, tallies: dict[str, Tally] | None = None) -> dict[str, Tally]:
    """Take turns between the parts until the time, the attempts or the goals are reached.

    Args:
        parts: The parts.
        seed: Seed of the first attempt at each part; the next attempts count up from it.
        seconds: Time for all parts together.
        tries: Largest number of attempts at each part; None for no limit.
        goals: Whether a part ends at its goal of events.
        log: File to which each attempt is appended.
        tallies: Earlier attempts, to which the new attempts are added; broken ones are repeated.

    Returns:
        What the attempts came to, by part.
    """
    tallies = {} if tallies is None else tallies
    began = time.monotonic()
    earlier = {part.name: tallies.setdefault(part.name, Tally()) for part in parts}
    repeated = {name: len(tally.broken) for name, tally in earlier.items()}
    seeds = {name: _seeds(tally, seed) for name, tally in earlier.items()}
    made = dict.fromkeys(seeds, 0)

    def turns_left(part: Hostility) -> float:
        name, left = part.name, float("inf") if tries is None else tries - made[part.name]
        return left if not goals or made[name] < repeated[name] or tallies[name].events < part.goal else 0

    def time_left(part: Hostility) -> bool:
        return time.monotonic() - began + part.seconds < seconds

    while waiting := [part for part in parts if turns_left(part) > 0 and time_left(part)]:
        part = min(waiting, key=lambda part: tallies[part.name].seconds / part.weight)
        for number in islice(seeds[part.name], int(min(part.batch, turns_left(part)))):
            _attempt(part, number, tallies[part.name], log)
            made[part.name] += 1
    return tallies


def _seeds(tally: Tally, first: int) -> Iterator[int]:
    """Return the seeds that broke the app, then seeds that were not tried."""
    return chain(sorted(tally.broken), (seed for seed in count(first) if seed not in tally.outcomes))


def _attempt(part: Hostility, seed: int, tally: Tally, log: Path | None) -> None:
    """Make an attempt, and add it to a tally and a log."""
    start = time.monotonic()
    outcome = attempt_once(part, seed)
    seconds = time.monotonic() - start
    tally.add(seed, outcome)
    tally.seconds += seconds
    if outcome.broken is not None:
        print(f"{part.name} broke with seed {seed}: {outcome.broken}", flush=True)
    if log is not None:
        row = {"part": part.name, "seed": seed, "seconds": round(seconds, 3)} | outcome._asdict()
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def table(tallies: dict[str, Tally], seed: int) -> str:
    """Return the table of the campaign, followed by the commands that repeat what broke."""
    lines = [f"{'part':<20}{'events':>8}{'tried':>8}{'held':>8}{'broken':>8}{'seconds':>9}"]
    lines += [f"{name:<20}{tally.events:>8}{tally.tried:>8}{tally.tried - len(tally.broken):>8}"
              f"{len(tally.broken):>8}{tally.seconds:>9.0f}" for name, tally in tallies.items()]
    lines.append(f"First seed: {seed}")
    for name, tally in tallies.items():
        lines += [f"python -m experiments.hold_fast --part {name} --seed {number} --tries 1\n"
                  f"    {broken.strip().splitlines()[-1][:300]}" for number, broken in sorted(tally.broken.items())]
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
