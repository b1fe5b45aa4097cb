"""The page Benchmark through Streamlit's AppTest, with a small written record."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pages.parts.benchmark.chart import headline, ranked_figure, shared_fence
from pages.parts.benchmark.table import ranked_table
from tests.app.opening import opened, texts
from udml_core.numerics.measures import MEASURES
from udml_core.results import benchmark
from udml_core.results.benchmark import Benchmark, pack_hits, read
from udml_core.runs import runs_folder

pytestmark = pytest.mark.usefixtures("own_places")
RUN = "20260101-000000-plm-a1b2c3"


def row(method: str, mean: float, supervision: str = "none", run: str = "missing", **others: Any) -> dict[str, Any]:
    """Return a row of a record with two seeds."""
    runs = [{"seed": seed, "run": f"{run}", "costs": {"processor seconds": 3.0, "MB": 400.0},
             "hits": pack_hits(np.arange(1000) < 10 * mean),
             "evaluation": {"initial": {}, "final": {"map@r": mean + seed, "recall@1": mean}}} for seed in range(2)]
    return {"method": method, "is method": True, "row": f"{method} @backbone=pixels", "recipe": "",
            "supervision": supervision, "sees test images": False, "comparable": False, "printed": {}, "runs": runs,
            "summary": {"images": [1000, 0.0], "recall@1": [mean, 0.0], "map@r": [mean + 0.5, 0.71],
                        "processor seconds": [3.0, 0.0], "MB": [400.0, 0.0], "lines": [len(method), 0.0]}} | others


def record() -> dict[str, Any]:
    digits = {"PLM": row("plm", 40.0, run=RUN, printed={"PLM, table 1": {"recall@1": 60.6}}),
              "NCA": row("nca", 50.0, "all"), "Averages": row("frozen", 60.0, **{
                  "sees test images": True, "is method": False, "recipe": "whiten"}), "PCA": row("pca", 30.0)}
    clothes = {"PLM": row("plm", 40.0), "NCA": row("nca", 20.0, "all"), "PCA": row("pca", 10.0)}
    papers = [{"title": "A table", "data": "CUB", "printed": "recall@1",
               "figures": {"plm": 60.0, "pca": 50.0, "nca": 40.0}}]
    return {"command": "python -m experiments.benchmark --budget 1", "device": "CPU", "versions": {}, "date": "today",
            "protocol": "two seeds", "papers": papers, "datasets": {
                name: {"title": name.capitalize(), "near": near, "encoder": "pixels", "budget": "few images",
                       "rows": rows}
                for name, near, rows in (("digits", "CUB", digits), ("clothes", "Cars", clothes))}}


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a small record, which the page reads."""
    path = tmp_path / "benchmark.json"
    path.write_text(json.dumps(record()), encoding="utf-8")
    monkeypatch.setattr(benchmark, "FOLDER", tmp_path)
    return path


def methods(test: Any) -> list[str]:
    listed: list[str] = test.dataframe[0].value["Method"].tolist()
    return listed


@pytest.mark.usefixtures("path")
def test_methods_are_ranked_by_the_average_over_the_data_sets() -> None:
    test = opened("benchmark")
    assert not test.exception
    assert not test.error
    assert methods(test) == ["PLM", "NCA", "PCA", "Averages"]
    frame = test.dataframe[0].value
    assert frame["Digits"].tolist() == ["40.5 ± 0.7", "50.5 ± 0.7", "30.5 ± 0.7", "60.5 ± 0.7"]
    assert frame["Average rank"].tolist() == ["1.5", "1.5", "3.0", ""], "Averages are not measured on both data sets"
    assert frame["Rank"].astype(object).where(frame["Rank"].notna(), None).tolist() == [1, 1, 3, None]
    assert "A method without a rank is not measured on all of these data sets" in texts(test)
    assert "3 methods on 2 data sets × 2 seeds" in texts(test)
    assert "1 method is left out" in texts(test)
    assert "cannot separate any two methods" in texts(test)
    assert texts(test).count("What this table cannot tell") == 1
    orders = next(shown.value for shown in test.dataframe if "Confirmed" in shown.value.columns)
    assert orders[["Here", "Confirmed", "Reversed"]].to_numpy().tolist() == [["Digits", 1, 2]], "the similar data set"
    assert ("Of 3 printed pairs that are measured here, each counted once, **1 have the papers' order, 2 the reverse**"
            in texts(test))
    pairs = next(shown.value for shown in test.dataframe if "Similar data" in shown.value.columns)
    assert pairs[pairs["Here"] == "Clothes"]["Order"].tolist() == ["confirmed", "confirmed", "reversed"]


@pytest.mark.usefixtures("path")
def test_a_link_filters_by_supervision_data_set_and_measure() -> None:
    test = opened("benchmark", dataset="digits", uses="none.all", measure="lines")
    assert methods(test) == ["PLM", "NCA", "PCA"], "three letters each"
    assert "Average rank" not in test.dataframe[0].value.columns
    assert test.dataframe[0].value["Rank"].tolist() == [1, 1, 1]
    assert "A method without a rank" not in texts(test)
    test.selectbox(key="benchmark-measure").select("map@r").run()
    assert methods(test) == ["NCA", "PLM", "PCA"]
    test = opened("benchmark", uses="test-images", dataset="clothes")
    assert "No chosen method is measured" in texts(test)


@pytest.mark.usefixtures("path")
def test_the_chart_has_a_row_for_each_method_with_the_best_at_the_top() -> None:
    measured = read()
    assert measured is not None
    names = ranked_table(measured, "map@r").names
    figure = ranked_figure(measured, names, "map@r")
    lowest, top = figure.layout.yaxis.range
    assert list(figure.layout.yaxis.tickvals) == names, "no name is left out"
    assert lowest > top, "the first is at the top"
    first = next(iter(measured.datasets.values()))
    assert dict(zip(figure.data[0].y, figure.data[0].x, strict=True))[names[0]] == (
        first.entries[names[0]].summary["map@r"][0])
    gray = next(trace for trace in figure.data if trace.name == "not trained")
    assert sorted(gray.y) == ["Averages", "PCA"], "neither a refinement nor PCA learns"
    assert "The best average rank is first." in texts(opened("benchmark"))


@pytest.mark.usefixtures("path")
def test_the_headline_names_the_first_row_and_the_first_trained_row() -> None:
    measured = read()
    assert measured is not None
    assert headline(measured, ["PLM", "NCA"], "map@r") == (
        "PLM has the best average rank by whole group found (MAP@R)")
    digits = measured.chosen(["digits"], measured.groups())
    assert headline(digits, ranked_table(digits, "recall@1").names, "recall@1") == (
        "Averages, without training, is first by first result right (R@1); the best trained method, NCA, is at place 2")
    assert headline(digits, ["PCA"], "lines") == "PCA, without training, is first by Lines of code"


@pytest.mark.usefixtures("path")
def test_the_axis_is_cut_only_below_the_outliers_of_all_data_sets() -> None:
    measured = read()
    assert measured is not None
    assert shared_fence(measured, MEASURES["map@r"]) is None

    def with_values(*values: list[float]) -> Benchmark:
        entry = measured.datasets["digits"].entries["PLM"]
        return replace(measured, datasets={str(number): replace(measured.datasets["digits"], entries={
            str(row): replace(entry, summary={"map@r": (value, 0.0)}) for row, value in enumerate(several)})
            for number, several in enumerate(values)})

    near = [50.0, 51.0, 52.0, 53.0, 54.0, 10.0]
    fence = shared_fence(with_values(near), MEASURES["map@r"])
    assert fence is not None
    assert 40 < fence < 50
    assert shared_fence(with_values(near, [20.0, 20.5, 21.0]), MEASURES["map@r"]) is None, "20 % is usual there"


@pytest.mark.usefixtures("path")
def test_a_cell_states_its_command_or_opens_its_runs() -> None:
    test = opened("benchmark", method="PLM")
    commands = [code.value for code in test.code]
    assert any('--dataset digits --row "PLM" --again --force' in command for command in commands)
    assert "PLM, table 1 prints R@1 60.6; **not comparable**" in texts(test)
    folder = runs_folder() / RUN
    folder.mkdir(parents=True)
    (folder / "spec.json").write_text("{}", encoding="utf-8")
    test.run()
    assert not any("--row" in code.value for code in test.code)
    assert [link.proto.label for link in test.get("page_link") if "seed" in link.proto.label] == [
        "Open the run of seed 0", "Open the run of seed 1"]


def test_a_click_names_the_method_and_the_data_set_of_the_cell(path: Path) -> None:
    read = benchmark.read(path)
    assert read is not None
    table = ranked_table(read, "map@r")
    assert table.cell(1, "Clothes") == ("NCA", "clothes")
    assert table.cell(3, "Processor seconds") == ("Averages", None)


def test_a_missing_record_names_the_command_and_a_broken_one_the_problem(path: Path) -> None:
    path.write_text("{", encoding="utf-8")
    assert "could not be read" in opened("benchmark").error[0].value
    path.unlink()
    test = opened("benchmark")
    assert not test.error
    assert "python -m experiments.benchmark --budget 20 --dataset digits" in test.code[0].value
