"""The page Compare through AppTest: which runs it compares, and its verdict."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.parts.compare import seed_means
from pages.parts.compare.classes import class_means
from pages.parts.compare.colors import swatch_of
from pages.parts.compare.matched_maps import matched_maps
from pages.parts.compare.queries import FEW_ROWS, HITS_IN_ROW, only_here, won_tiles
from pages.parts.compare.seed_means import gap_interval, paper_table
from pages.parts.draw.palette import BEFORE
from pages.parts.shell.cached import load_retrieval
from tests.app.opening import opened, texts
from tests.app.test_run_picker import go, shown
from tests.running import worked, write_digits
from udml_core.base.errors import UserError
from udml_core.exploration.comparison import only_first_hits
from udml_core.exploration.map_content import Color
from udml_core.runs import Run
from udml_core.runs.verdict import standing

pytestmark = pytest.mark.usefixtures("own_runs")


def finish_another(run: Run) -> Run:
    """Let a run of an equal request finish after all others."""
    return Run(shutil.copytree(run.folder, run.folder.with_name("20990101-000000-rpml-0000aa")))


def compared(test: AppTest) -> list[str]:
    """Return the ids of the compared runs."""
    return list(test.multiselect(key="compare-runs").value)


def test_a_run_that_finishes_replaces_neither_a_linked_comparison_nor_the_run_in_the_sidebar(pair: list[Run]) -> None:
    test = opened("compare", runs=f"{pair[1].id}.{pair[0].id}")
    assert shown(test) == pair[0].id
    newer = finish_another(pair[0])
    for _ in range(2):
        test.run()
        assert compared(test) == [pair[1].id, pair[0].id]
        assert shown(test) == pair[0].id
    for page in ("retrieval", "home", "explore", "compare"):
        assert shown(go(test, page)) == pair[0].id, page
    test.sidebar.selectbox(key="choose-run").set_value(newer.id).run()
    assert compared(test)[0] == newer.id, "the user's own choice starts a new comparison"


@pytest.mark.parametrize("part", ["Judge", "Settings"])
def test_a_reload_keeps_the_run_in_the_sidebar(part: str, pair: list[Run]) -> None:
    test = opened("compare", part=part)
    older = pair[1].id if shown(test) == pair[0].id else pair[0].id
    test.sidebar.selectbox(key="choose-run").set_value(older).run()
    assert shown(test) == older
    address = {name: values if isinstance(values, str) else values[0] for name, values in test.query_params.items()}
    address.pop("view", None)
    assert shown(opened("compare", **address)) == older


def test_a_judged_pair_of_one_of_several_runs_leads_to_its_differences_until_runs_are_chosen(pair: list[Run]) -> None:
    run = pair[0]
    test = opened("compare", part="Where they differ", runs=run.id, a=f"{run.id}:initial", b=f"{run.id}:final")
    assert not test.exception
    assert "shown come last under Judge" in texts(test)
    assert test.button_group(key="compare-part").value == "Where they differ"
    test.multiselect(key="compare-runs").set_value([run.id, pair[1].id]).run()
    assert not test.exception
    assert "shown come last under Judge" not in texts(test)


def test_images_that_only_one_of_two_searches_finds_are_marked() -> None:
    assert only_here([[3, 4, 5], [5, 6, 3]]) == {0: {4}, 1: {6}}
    assert only_here([[3], [4], [5]]) == {}, "of three searches it would not be clear which the others are"


GROUPS = tuple(f"group {number}" for number in range(1, 5))


def test_without_classes_all_maps_have_the_colors_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    first = np.array([[0.0, 0], [9, 0], [-9, 0], [0, 9], [0.1, 0]])
    indices = {"first": np.array([2, 4, 6, 8, 9]), "second": np.array([3, 4, 6, 8])}
    positions = {"first": first, "second": np.random.default_rng(0).normal(size=(4, 2))}

    def frame(run: SimpleNamespace, _map: str) -> SimpleNamespace:
        projection = SimpleNamespace(indices=indices[run.id], positions=[positions[run.id]])
        return SimpleNamespace(run=run, dataset=SimpleNamespace(labels=None), projection=projection, frame=0, map_id="")

    def groups(shown: SimpleNamespace) -> Color:
        return Color("group", np.array({"first": [1, 0, 2, 3, 0], "second": [0, 0, 0, 0]}[shown.run.id]), GROUPS)

    monkeypatch.setattr("pages.parts.compare.matched_maps.load_map", frame)
    monkeypatch.setattr("pages.parts.compare.matched_maps.group_color", groups)
    runs = [SimpleNamespace(id=name) for name in indices]
    maps = matched_maps(runs, {run.id: run for run in runs})  # type: ignore[arg-type]
    shown = {name: [of.color.names[value] if value >= 0 else of.color.none for value in of.color.values]
             for name, of in maps.items()}
    assert shown == {"first": ["group 2", "group 1", "group 3", "group 4", "group 1"],
                     "second": ["not on the first map", "group 1", "group 3", "group 4"]}, "as on every other map"
    assert all(of.color.fixed for of in maps.values()), "a group has one color, whatever its size on another map"


@pytest.mark.parametrize("page", ["home", "retrieval", "explore"])
def test_the_first_run_that_a_page_shows_is_kept(page: str, pair: list[Run]) -> None:
    test = opened(page)
    finish_another(pair[0])
    assert shown(go(test, "explore")) == pair[0].id


def test_the_current_image_is_the_query(pair: list[Run]) -> None:
    test = go(opened("retrieval", run=pair[0].id, add="7"), "compare")
    assert test.query_params["query"] == "7"


def test_every_chart_of_a_comparison_names_its_axes(pair: list[Run]) -> None:
    charts = opened("compare", runs=f"{pair[0].id}.{pair[1].id}", part="Curves").get("plotly_chart")
    assert charts
    for chart in charts:
        layout = json.loads(chart.proto.spec)["layout"]
        assert layout["xaxis"]["title"]["text"] == "epoch"
        assert layout["yaxis"]["title"]["text"]


def test_the_interval_of_the_gap_is_around_the_difference_of_the_measures(pair: list[Run], root: Path) -> None:
    poor = worked(root, fields={"dimension": 2, "epochs": 1, "steps": 1})
    low, high = gap_interval([pair[0]], [poor]) or (0.0, 0.0)
    first, second = (standing(run.evaluation()).after or 0.0 for run in (pair[0], poor))
    assert 0 < low < first - second < high < low + 10
    assert gap_interval([poor], [pair[0]]) == pytest.approx((-high, -low), abs=0.3)
    halved = gap_interval([poor, pair[0]], [poor]) or (0.0, 0.0)
    assert halved == pytest.approx((low / 2, high / 2), abs=0.3), "the mean of two runs is half as far"


def test_a_table_for_a_paper_is_tested_over_seeds_where_there_are_enough_or_else_over_queries(
        root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = [worked(root, seed=seed) for seed in range(3)]
    poor = worked(root, fields={"dimension": 2, "epochs": 1, "steps": 1})
    named = {"good": good[:2], "poor": [poor]}
    assert paper_table(named).over == "queries"
    assert paper_table(named | {"good": good}).over == "seeds"

    def fail(run: Run) -> None:
        raise UserError(f"The images of {run.id} are missing.")

    monkeypatch.setattr(seed_means, "load_retrieval", fail)
    assert paper_table(named).over == "seeds", "the measures are at hand without images"


def test_images_without_labels_have_no_classes_and_their_frozen_features_come_first(places: Path) -> None:
    folder = str(write_digits(places / "unlabeled", 60, by_class=False))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UDML_RUNS", str(places / "unlabeled-runs"))
        frozen, trained = (worked(places / "unlabeled-runs", dataset=folder, split="all", method=method, fields=fields)
                           for method, fields in (("frozen", {}), ("pca", {"dimension": 4})))
        for own in (frozen, trained):
            test = opened("compare", run=own.id)
            assert not test.exception
            assert compared(test) == [frozen.id, trained.id], "A and B as in Search and Judge"
            assert "Classes" not in test.segmented_control(key="compare-part").options
        assert "Classes" not in opened("compare", part="Judge").segmented_control(key="compare-part").options
        assert swatch_of([frozen, trained], 0).count(BEFORE) == 1
        assert BEFORE not in swatch_of([frozen, trained], 1)


def test_every_class_has_the_mean_of_its_queries_in_each_run(pair: list[Run]) -> None:
    labels = np.array([3, 1, 1, 3, 5])
    classes, means = class_means([labels, labels], [np.array([0.1, 0.2, 0.4, 0.3, np.nan]), np.full(5, 0.5)])
    assert classes.tolist() == [1, 3], "class 5 has one image only"
    np.testing.assert_allclose(means, [[30, 20], [50, 50]])
    test = opened("compare", runs=f"{pair[0].id}.{pair[1].id}", part="Classes")
    assert not test.exception
    [chart] = test.get("plotly_chart")
    drawn = [trace for trace in json.loads(chart.proto.spec)["data"] if trace["mode"] == "markers"]
    retrievals = [load_retrieval(run) for run in pair]
    gaps = []
    for trace, retrieval in zip(drawn, retrievals, strict=True):
        of_test = retrieval.dataset.labels[retrieval.split.test]
        expected = {retrieval.dataset.class_names[label]: 100 * np.nanmean(retrieval.precisions()[of_test == label])
                    for label in np.unique(of_test)}
        values = trace["x"] if isinstance(trace["x"], list) else np.frombuffer(base64.b64decode(trace["x"]["bdata"]))
        assert dict(zip(trace["y"], values, strict=True)) == pytest.approx(expected)
        gaps.append(np.asarray(values))
    assert np.all(np.diff(np.ptp(gaps, axis=0)) <= 1e-9), "the classes on which the runs differ most come first"


def test_back_and_forward_restore_the_part_in_the_address(pair: list[Run]) -> None:
    test = opened("compare", runs=f"{pair[0].id}.{pair[1].id}")
    part = "compare-part"
    assert test.button_group(key=part).value == "Same query", "images come first if the search takes no time"
    test.button_group(key=part).set_value("Settings").run()
    assert test.query_params["part"] in ("Settings", ["Settings"])
    for linked, part_shown in (("Curves", "Curves"), ("Who wins?", "Where they differ"), ("", "Same query")):
        test.query_params.pop("part", None)
        if linked:
            test.query_params["part"] = linked
        assert test.run().button_group(key=part).value == part_shown
        assert not test.exception


def test_a_run_is_called_alone_only_where_the_page_chose_the_comparison(pair: list[Run]) -> None:
    spec = finish_another(pair[0]).folder / "spec.json"  # now alone on the test images of another split
    planned = spec.read_text()
    spec.write_text(planned.replace('"split": "seen"', '"split": "zero-shot"'))
    assert spec.read_text() != planned
    assert not opened("compare", runs=f"{pair[1].id}.{pair[0].id}").info
    assert "is the only finished run on its test images" in opened("compare").info[0].value


def test_two_runs_show_the_queries_that_only_one_answers_as_rows_with_marked_hits(pair: list[Run]) -> None:
    test = opened("compare", runs=f"{pair[0].id}.{pair[1].id}")
    assert not test.exception
    assert "queries only with " in texts(test)
    assert sum("Hit only with" in element.proto.body for element in test.get("html")) == 2
    retrievals = [load_retrieval(run) for run in pair]
    atlases = [retrieval.atlas("final") for retrieval in retrievals]
    for order in (1, -1):
        won = only_first_hits(*atlases[::order])[:FEW_ROWS]
        assert len(won), "the runs differ"
        marks = [tile.mark for tile in won_tiles(retrievals[::order], won)]
        row = 1 + 2 * HITS_IN_ROW
        assert [marks[number] for number in range(0, len(marks), row)] == ["query"] * len(won)
        assert [marks[number + 1] for number in range(0, len(marks), row)] == ["hit"] * len(won)
        assert [marks[number + 1 + HITS_IN_ROW] for number in range(0, len(marks), row)] == ["miss"] * len(won)
