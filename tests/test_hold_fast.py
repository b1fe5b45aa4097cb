"""The campaign of hostile attempts: turns, seeds, hangs, and what it prints."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from experiments.hold_fast.__main__ import collect_parts, run_campaign, table
from experiments.hold_fast.attempt import Part, attempt_once, count_event


def test_the_campaign_lists_each_broken_attempt_with_the_seed_that_repeats_it(tmp_path: Path) -> None:
    def break_sometimes(random: np.random.Generator, scratch: Path) -> str | None:
        assert list(scratch.iterdir()) == []
        (scratch / "left").touch()
        count_event()
        count_event()
        return "broke here" if random.random() < 0.3 else None

    fragile, sound = Part("fragile", break_sometimes), Part("sound", lambda _random, _scratch: None, batch=3)
    tallies = run_campaign([fragile, sound], 7, 60, 20)
    assert (tallies["sound"].tried, tallies["sound"].broken) == (20, {})
    assert tallies["fragile"].events == 2 * tallies["fragile"].tried == 40
    broken = tallies["fragile"].broken
    assert 0 < len(broken) < 20
    assert all((seed in broken) == (attempt_once(fragile, seed)[0] is not None) for seed in range(7, 27))
    printed = table(tallies, 7)
    assert all(f"--part fragile --seed {seed} --tries 1\n    broke here" in printed for seed in broken)


def test_an_attempt_that_hangs_or_raises_counts_as_broken() -> None:
    def hang(_random: np.random.Generator, _scratch: Path) -> None:
        time.sleep(600)

    def fail(_random: np.random.Generator, _scratch: Path) -> None:
        raise ValueError("unexpected")

    began = time.monotonic()
    assert "has not ended after 0.1 seconds" in (attempt_once(Part("hanging", hang, limit=0.1), 0)[0] or "")
    assert time.monotonic() - began < 60
    assert "ValueError: unexpected" in (attempt_once(Part("failing", fail), 0)[0] or "")


def test_every_part_has_its_own_name_and_ci_names_existing_parts() -> None:
    names = [part.name for part in collect_parts()]
    assert len(set(names)) == len(names)
    script = (Path(__file__).parents[1] / ".ci" / "run").read_text(encoding="utf-8")
    chosen = script.partition("--part ")[2].partition("\n")[0].split()
    assert chosen
    assert set(chosen) <= set(names)
