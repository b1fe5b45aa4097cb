"""The campaign of hostile attempts: turns, seeds, hangs, and what it prints."""

from __future__ import annotations

import re
import statistics
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from experiments.hold_fast.__main__ import collect_parts, read_log, record_of, run_campaign, table
from experiments.hold_fast.attempt import Hostility, attempt_once, count_event, note_figure
from udml_core.results import records

INPUTS = ("images", "tables", "specs", "options", "addresses", "commands")
"""Parts whose events are bad inputs."""


def test_the_campaign_lists_each_broken_attempt_with_the_seed_that_repeats_it(tmp_path: Path) -> None:
    def break_sometimes(random: np.random.Generator, scratch: Path) -> str | None:
        assert list(scratch.iterdir()) == []
        (scratch / "left").touch()
        count_event()
        count_event()
        return "broke here" if random.random() < 0.3 else None

    fragile, sound = Hostility("fragile", break_sometimes), Hostility("sound", lambda _random, _scratch: None, batch=3)
    tallies = run_campaign([fragile, sound], 7, 60, 20)
    assert (tallies["sound"].tried, tallies["sound"].broken) == (20, {})
    assert tallies["fragile"].events == 2 * tallies["fragile"].tried == 40
    broken = tallies["fragile"].broken
    assert 0 < len(broken) < 20
    assert all((seed in broken) == (attempt_once(fragile, seed)[0] is not None) for seed in range(7, 27))
    printed = table(tallies, 7)
    assert all(f"--part fragile --seed {seed} --tries 1\n    broke here" in printed for seed in broken)


def test_a_campaign_goes_on_from_its_log_repeats_what_broke_and_ends_at_its_goals(tmp_path: Path) -> None:
    log, is_mended = tmp_path / "log", False
    made: list[int] = []

    def attempt(random: np.random.Generator, _scratch: Path) -> str | None:
        value = int(random.integers(2**31))
        made.append(value)
        count_event()
        count_event()
        note_figure("value", value)
        return "broke here" if value % 3 == 0 and not is_mended else None

    part = Hostility("fragile", attempt, goal=40)
    first = run_campaign([part], 7, 60, 9, True, log)
    broken = set(first["fragile"].broken)
    assert len(made) == len(log.read_text().splitlines()) == 9
    assert broken
    is_mended = True
    tallies = run_campaign([part], 7, 60, None, True, log, read_log(log))
    assert tallies == read_log(log) | {"fragile": replace(read_log(log)["fragile"], seconds=tallies["fragile"].seconds)}
    tally = tallies["fragile"]
    assert sorted(tally.outcomes) == list(range(7, 27))
    assert (tally.events, tally.broken, tally.mended) == (40, {}, broken)
    assert len(made) == 20 + len(broken)
    rows = record_of(tallies, 7)["datasets"]
    assert rows["Hostile attempts"]["rows"]["fragile"] == {
        "events": 40, "tried": 20, "held": 20, "broken": 0, "mended": len(broken)}
    values = [outcome.figures["value"] for _, outcome in sorted(tally.outcomes.items())]
    assert rows["Measured by fragile"]["rows"]["second half"]["value"] == statistics.median(values[10:])


def test_the_record_adds_up_and_its_text_states_its_figures() -> None:
    finding = next(finding for finding in records.findings() if finding.name == "hold-fast")
    tables = {table.title: table.rows for table in records.read(finding).tables}
    rows = {name: {measure: int(value) for measure, (value, _) in row.items()}
            for name, row in tables["Hostile attempts"].items()}
    names = {part.name for part in collect_parts()}
    left_out = finding.text.replace("\n", " ").partition("Not in this record: ")[2].partition(".")[0]
    named = {name for name in names if re.search(rf"`{name}`", left_out)}
    assert set(rows) | named == names
    assert not set(rows) & named
    for row in rows.values():
        assert row["events"] >= row["tried"] == row["held"] + row["broken"]
        assert row["broken"] == 0
    inputs = sum(rows[name]["events"] for name in INPUTS)
    first, second = ({measure: value for measure, (value, _) in row.items()}
                     for row in tables["Measured by browsers"].values())
    for stated in (f"moved sliders {rows['browsers']['events']} times",
                   f"after {first['page p50 s']:.1f} s (median) in the first half of the rounds, and after "
                   f"{second['page p50 s']:.1f} s in the second half",
                   f"a slider's step took {first['slider p50 s']:.1f} and {second['slider p50 s']:.1f} s",
                   f"memory was {first['server MB']:.0f} and {second['server MB']:.0f} MB",
                   f"{rows['kills']['events']:,} kills", f"{rows['power-cuts']['events']} power cuts",
                   f"all {rows['kills']['tried'] + rows['power-cuts']['tried']} runs ended equal",
                   f"weights ({rows['weights']['events']} attempts)",
                   f"identifiers of analyses ({rows['identifiers']['events']})",
                   f"all {rows['storms']['tried']} attempts, and in all {rows['servers']['tried']} with two servers",
                   f"of {rows['strangers']['events']} requests", f"{rows['canceled']['events']:,} waiting runs",
                   f"{rows['submissions']['events']} submissions", f"{rows['vanishing']['events']} pages went on",
                   f"{rows['targets']['events']} exports and copies",
                   f"with {rows['together']['events']} disturbances", f"({rows['visitors']['events']} visits)",
                   f"{rows['damage']['events']} damaged files", f"{inputs:,} bad inputs"):
        assert stated in finding.text.replace("\n", " ")


def test_an_attempt_that_hangs_or_raises_counts_as_broken() -> None:
    def hang(_random: np.random.Generator, _scratch: Path) -> None:
        time.sleep(600)

    def fail(_random: np.random.Generator, _scratch: Path) -> None:
        raise ValueError("unexpected")

    began = time.monotonic()
    assert "has not ended after 0.1 seconds" in (attempt_once(Hostility("hanging", hang, limit=0.1), 0)[0] or "")
    assert time.monotonic() - began < 60
    assert "ValueError: unexpected" in (attempt_once(Hostility("failing", fail), 0)[0] or "")


def test_a_part_is_not_begun_without_the_time_that_it_takes() -> None:
    long = Hostility("long", lambda _random, _scratch: None, seconds=3600)
    short = Hostility("short", lambda _random, _scratch: None)
    tallies = run_campaign([long, short], 7, 60, 1)
    assert (tallies["long"].tried, tallies["short"].tried) == (0, 1)


def test_every_part_has_its_own_name_and_ci_chooses_among_all() -> None:
    names = [part.name for part in collect_parts()]
    assert len(set(names)) == len(names)
    script = (Path(__file__).parents[2] / ".ci" / "run").read_text(encoding="utf-8")
    command = script.partition("-m experiments.hold_fast ")[2].partition("\n")[0]
    assert command == "--minutes 2"
