"""The table of sizes: how it splits a run, what it says of a step that was stopped, and the record's figures."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.million import sizes
from tests.project.documents import ROOT
from udml_core.results.records import FOLDER, findings

SPIN = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[5]), 99))
with open(sys.argv[4], "w") as file:
    file.write(json.dumps({"phase": "features", "share": 0.4, "seconds": 0.1, "processor": 0.1, "memory": 9.0,
                           "began": 0.0}) + "\\n")
while True:
    pass
"""


def line(phase: str, seconds: float, **more: Any) -> dict[str, Any]:
    return {"phase": phase, "share": 0.0, "seconds": seconds, "processor": 2 * seconds, "memory": 1000.0} | more


def test_a_run_is_split_into_features_search_and_evaluation() -> None:
    lines = [line("imported", 2), line("reading", 2.5), line("loading the network", 3), line("loading the network", 7),
             line("features", 8), line("features", 20), line("training", 21),
             line("evaluation", 25, searchable=True), line("end", 40)]
    row = sizes.figures({"run": {"phases": lines}})
    assert (row["features, seconds"], row["features, processor seconds"]) == (18, 36)
    assert row["loading the network, seconds"] == 4
    assert (row["until searchable, seconds"], row["evaluation, seconds"]) == (25, 15)
    before = [entry for entry in lines if entry["phase"] != "loading the network"]
    assert sizes.figures({"run": {"phases": before}})["features, seconds"] == 18.5, "25b57a3 does not name the loading"
    of_vectors = [entry for entry in lines if entry["phase"] not in sizes.FEATURES]
    assert "features, seconds" not in sizes.figures({"run": {"phases": of_vectors}})


def test_the_parts_of_a_start_add_up() -> None:
    lines = [line("process", 0.1) | {"process start": 0.02}, line("imported", 2), line("planned", 2.2),
             line("training", 3), line("training", 3.5), line("evaluation", 5)]
    row = sizes.figures({"start": {"phases": lines}})
    parts = ("process", "imports", "reading", "epoch and embedding")
    assert [row[f"start, {part}, seconds"] for part in parts] == [0.02, 2, 1, 2]


def test_a_step_that_takes_too_long_is_stopped_and_says_how_far_it_came(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "spin.py"
    script.write_text(SPIN, encoding="utf-8")
    monkeypatch.setattr(sizes, "STEP", script)
    size = replace(sizes.SIZES[5902], steps=("run", "pca"))
    rows = sizes.measure_size(tmp_path, tmp_path / "after", size, 1)
    assert rows["run"]["stopped"] == "stopped after 1 processor seconds: features, 40 %"
    assert 0.5 < rows["run"]["processor seconds"] < 5
    assert rows["pca"] == {"stopped": sizes.NO_EMBEDDING}
    row = sizes.figures(rows)
    assert row["run, stopped"] == rows["run"]["stopped"]
    table = sizes.as_table({"datasets": {"": {"rows": {"birds: before": row, "birds: after": {
        "run, processor seconds": 71.2, "run, memory, MB": 1090.0}}}}})
    assert "| run of frozen features | stopped after 1: features, 40 % | 71 | – | 1.1 |" in table
    script.write_text("raise SystemExit(1)", encoding="utf-8")
    assert "failed" not in sizes.measure_size(tmp_path, tmp_path / "after", size, 1)["run"], "finished steps are kept"


FASHION = "70,000 Fashion-MNIST, 96 px"


def recorded() -> dict[str, Any]:
    read: dict[str, Any] = json.loads((FOLDER / "sizes.json").read_text(encoding="utf-8"))
    return read


def rows_of(title: str) -> list[dict[str, Any]]:
    """Return the rows of a size before and after."""
    rows = recorded()["datasets"]["Sizes before and after"]["rows"]
    return [rows[f"{title}: {version}"] for version in sizes.VERSIONS]


def shown(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"


def test_the_guide_has_the_table_of_the_record() -> None:
    assert sizes.as_table(recorded()) in (ROOT / "docs" / "galleries.md").read_text(encoding="utf-8")
    assert recorded()["commits"]["before"] == "25b57a32"


def test_the_text_states_the_figures_of_the_record_and_which_goals_are_missed() -> None:
    text = " ".join(next(finding.text for finding in findings() if finding.name == "sizes").split())
    before, after = rows_of("5,902 birds, 112 px")
    features, search, imports = ("features, processor seconds", "until searchable, processor seconds",
                                 "start, imports, processor seconds")
    assert f"take {shown(after[features])} processor seconds, and took {shown(before[features])}" in text
    assert before[features] / after[features] < 4
    assert "**The goal of four times is missed**" in text
    loading = after["loading the network, processor seconds"]
    assert f"; {shown(loading)} of them load and convert the network" in text
    assert f"can be searched after {shown(after[search])} processor seconds, and after {shown(before[search])}" in text
    assert f"imports take {shown(after[imports])} processor seconds, and took {shown(before[imports])}" in text
    before, after = rows_of("200,000 × 64 vectors")
    assert search not in before, "it was stopped"
    limit = re.search(r"after (\d+) processor seconds: evaluation, 0 %", before["run, stopped"])
    assert limit is not None
    assert f"searched after {shown(after[search])} processor seconds; before, they could not after {limit[1]}" in text
    assert f"Fashion-MNIST at 96 pixels take {shown(rows_of(FASHION)[1][features])}" in text
    share = re.search(r"after (\d+) processor seconds: features, (\d+) %", rows_of(FASHION)[0]["run, stopped"])
    assert share is not None
    assert f"before, {share[2]} % were done after {share[1]}" in text
    before, after = rows_of("1,000,000 × 64 vectors")
    assert f"drawn after {after['map, s']:.1f} seconds" in text
    assert f"{after['lasso, s']:.1f} seconds after a lasso" in text
    assert f"A million can be searched after {shown(after[search])}, and after {shown(before[search])} before" in text
    umap, memory = "umap, seconds", f"{after['umap, memory, MB'] / 1000:.1f} GB"
    assert f"by their neighbors, in {after[umap]:.0f} seconds (goal: 600), with {memory}" in text
    assert f"UMAP of 200,000 vectors took {rows_of('200,000 × 64 vectors')[1][umap]:.0f} seconds beside other" in text
    for row, name in ((before, "before"), (after, "after")):
        assert f"{row['run, memory, MB'] / 1000:.1f} GB {name}" in text
