"""Repeat the hostile review with random seeds until the time is spent.

    python -m experiments.hold_fast --minutes 15
    python -m experiments.hold_fast --part kills --seed 4711 --tries 1

The second line repeats one broken case of the table. The exit code is 1 if something broke.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import secrets
import time
from dataclasses import dataclass, field
from pathlib import Path

import experiments.hold_fast as package
from experiments.hold_fast.attempt import Part, attempt_once, shared_folder
from experiments.hold_fast.forked import prepare
from experiments.zero_shot import provenance


@dataclass
class Tally:
    """What the attempts at a part came to."""

    tried: int = 0
    events: int = 0
    seconds: float = 0.0
    broken: dict[int, str] = field(default_factory=dict)


def main() -> int:
    """Run the campaign and print its table."""
    parser = argparse.ArgumentParser(prog="python -m experiments.hold_fast", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    known = {part.name: part for part in collect_parts()}
    parser.add_argument("--minutes", type=float, default=float("inf"), help="time for all parts together")
    parser.add_argument("--tries", type=int, help="largest number of attempts at each part")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6), help="seed of the first attempts")
    parser.add_argument("--part", nargs="+", action="extend", choices=sorted(known), help="only these parts")
    parser.add_argument("--out", type=Path, help="the record to write")
    options = parser.parse_args()
    if options.tries is None and options.minutes == float("inf"):
        parser.error("give --minutes, --tries or both")
    os.environ["UDML_CACHE"] = str(shared_folder("cache"))
    os.environ["UDML_RUNS"] = str(shared_folder("runs"))
    os.environ |= {"UDML_MAPS": "0", "UDML_EXAMPLES": "0", "OMP_NUM_THREADS": "1"}
    prepare()
    chosen = [part for part in known.values() if (part.name in options.part if options.part else not part.on_request)]
    tallies = run_campaign(chosen, options.seed, options.minutes * 60, options.tries)
    print(table(tallies, options.seed))
    if options.out:
        rows = {name: {"events": tally.events, "attempts": tally.tried, "broken": len(tally.broken),
                       "seconds": round(tally.seconds, 1)} for name, tally in tallies.items()}
        record = provenance("hold_fast") | {"protocol": "attempts with random seeds; see README",
                                            "datasets": {"Hostile attempts": {"rows": rows}}}
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return int(any(tally.broken for tally in tallies.values()))


def collect_parts() -> list[Part]:
    """Return the parts of all modules of this package: each names one in PART, or several in PARTS."""
    parts: list[Part] = []
    for name in sorted(module.name for module in pkgutil.iter_modules(package.__path__)):
        if name != "__main__":
            module = importlib.import_module(f"{package.__name__}.{name}")
            parts += [*getattr(module, "PARTS", ()), *([module.PART] if hasattr(module, "PART") else [])]
    return parts


def run_campaign(parts: list[Part], seed: int, seconds: float, tries: int | None) -> dict[str, Tally]:
    """Take turns between the parts until the time or the attempts are spent.

    Args:
        parts: The parts.
        seed: Seed of the first attempt at each part; the next attempts count up from it.
        seconds: Time for all parts together.
        tries: Largest number of attempts at each part; None for no limit.
    """
    tallies = {part.name: Tally() for part in parts}
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        waiting = [part for part in parts if tries is None or tallies[part.name].tried < tries]
        if not waiting:
            break
        part = min(waiting, key=lambda part: tallies[part.name].seconds / part.weight)
        tally = tallies[part.name]
        turn = part.batch if tries is None else min(part.batch, tries - tally.tried)
        start = time.monotonic()
        for number in range(seed + tally.tried, seed + tally.tried + turn):
            broken, events = attempt_once(part, number)
            tally.tried += 1
            tally.events += events
            if broken is not None:
                tally.broken[number] = broken
                print(f"{part.name} broke with seed {number}: {broken}", flush=True)
        tally.seconds += time.monotonic() - start
    return tallies


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
