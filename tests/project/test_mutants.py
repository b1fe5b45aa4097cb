"""The list of mutants fits the sources and the tests; `make mutants` runs it."""

from __future__ import annotations

from collections import defaultdict

from tests.mutants import ROOT, load

LEAST = 60
FOLDERS = ("methods/", "numerics/losses/", "numerics/graph/", "numerics/geometry/", "numerics/sampling.py",
           "numerics/evaluation/")


def test_there_are_enough_mutants_of_every_part_with_distinct_names() -> None:
    mutants = load()
    assert len({mutant.name for mutant in mutants}) == len(mutants) >= LEAST
    for folder in FOLDERS:
        assert sum(mutant.file.startswith(f"udml_core/{folder}") for mutant in mutants) >= 5, folder


def test_every_mutant_changes_one_place_of_a_line_and_compiles() -> None:
    for mutant in load():
        source = (ROOT / mutant.file).read_text(encoding="utf-8")
        assert source.count(mutant.old) == 1, f"{mutant.name} occurs {source.count(mutant.old)} times"
        assert "\n" not in mutant.old + mutant.new
        assert mutant.old != mutant.new
        if mutant.file.endswith(".py"):  # a lesson's script is compiled by the browser that its test opens
            compile(source.replace(mutant.old, mutant.new), mutant.file, "exec")


def test_every_named_test_exists() -> None:
    named: dict[str, set[str]] = defaultdict(set)
    for mutant in load():
        assert mutant.tests, mutant.name
        for test in mutant.tests:
            file, _, name = test.partition("::")
            named[file].add(name)
    for file, names in named.items():
        text = (ROOT / file).read_text(encoding="utf-8")
        assert [name for name in names if name and f"\ndef {name.partition('[')[0]}(" not in text] == [], file
