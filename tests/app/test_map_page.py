"""The map and grid of Explore through Streamlit's AppTest: what is shown first, and maps that finish."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.parts.maps import frame as map_frame
from pages.parts.maps.coloring import _distances, colorings
from pages.parts.maps.excluding import without_excluded
from pages.parts.maps.frame import load_map
from pages.parts.maps.layouts import _layouts
from pages.parts.maps.spreading import SPREAD
from pages.parts.shell.cached import load_split
from tests.app.opening import opened, texts
from tests.app.test_refine_page import components
from tests.running import worked, write_digits
from udml_core.base import locks
from udml_core.data.given.labels import assign
from udml_core.data.given.log import log_path_of
from udml_core.exploration import density
from udml_core.exploration.grouping import from_center, similar_groups
from udml_core.exploration.map_content import Color, Layout
from udml_core.runs import Run
from udml_core.runs.analyses import Analysis, AnalysisSpec, create_analysis, list_analyses, plan_analysis
from udml_core.runs.analyses.kinds.pca import PCA
from udml_core.runs.analyses.kinds.tsne import TSNE
from udml_core.runs.search import Frames
from udml_core.runs.tasks import Status
from udml_core.work.jobs import follow_ups
from udml_core.work.workers.analyse import keep

EPOCHS = ("0", "1", "2")
pytestmark = pytest.mark.usefixtures("own_places")


@pytest.fixture(scope="module")
def finished(places: Path) -> Run:
    run = worked(places / "runs", fields={"dimension": 16, "epochs": 2})
    keep(run, plan_analysis(kind="pca", scope="sample", frames=EPOCHS), _no_report)
    return run


@pytest.fixture(scope="module")
def unlabeled(places: Path) -> Run:
    """A run without labels and without pseudo-labels."""
    folder = str(write_digits(places / "flat", 60, by_class=False))
    return worked(places / "runs", method="frozen", dataset=folder, split=None)


@pytest.fixture
def run(finished: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A copy of the finished run in a folder of its own."""
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "runs"))
    return Run(Path(shutil.copytree(finished.folder, tmp_path / "runs" / finished.id)))


def _no_report(_share: float, _step: str) -> None: ...


def finish_map(run: Run, spec: AnalysisSpec) -> Analysis:
    """Store a map with the arrays of the run's PCA map, as if it had been computed now."""
    (pca,) = [analysis for analysis in list_analyses(run, PCA) if analysis.spec().scope == "all"]
    with np.load(pca.folder / "result.npz") as arrays:
        return create_analysis(run, spec, state="done", result=dict(arrays))


def the_map(test: AppTest, number: int = 0) -> dict[str, Any]:
    return components(test, "scatter")[number]


def cursors(test: AppTest) -> list[dict[str, Any]]:
    return components(test, "slider")


def chosen(test: AppTest) -> str:
    """Return the title of the chosen map."""
    box, = (box for box in test.selectbox if box.label == "Layout")
    return box.options[box.index]


def whole_map(run: Run) -> str:
    return next(analysis.id for analysis in list_analyses(run, PCA) if analysis.spec().scope == "all")


def epochs_map(run: Run) -> str:
    return next(analysis.id for analysis in list_analyses(run, PCA) if analysis.spec().scope == "sample")


def test_maps_that_group_tightly_have_room_also_without_some_images(run: Run) -> None:
    maps = {name: load_map(run, finish_map(run, plan_analysis(kind=name)).id) for name in ("umap", "tsne", "pca")}
    assert {name: shown.layout.is_roomy for name, shown in maps.items()} == {"umap": True, "tsne": True, "pca": False}
    layout = maps["umap"].layout
    colors = Color("none", np.zeros(len(layout.indices)), ("all",))
    assert without_excluded(layout, colors, layout.indices[:3])[0].is_roomy
    moved, = (of for of in _layouts(run) if of.moves)
    assert not moved.draw(moved.load(run, moved.frames[-1])).is_roomy, "epochs would jump"


def test_a_better_map_is_shown_when_it_finishes_unless_the_user_chose_another(run: Run) -> None:
    test = opened("explore", run=run.id)
    assert not test.exception
    assert chosen(test).startswith("PCA")
    finish_map(run, plan_analysis(kind="tsne"))
    assert chosen(test.run()) == "t-SNE · by epoch"
    finish_map(run, plan_analysis(kind="umap"))
    assert chosen(test.run()) == "UMAP · by epoch"
    assert "map" not in test.query_params
    assert chosen(opened("explore", run=run.id)) == "UMAP · by epoch"


def test_a_map_that_the_user_did_not_start_is_announced_with_a_button(run: Run) -> None:
    finish_map(run, plan_analysis(kind="umap"))
    test = opened("explore", run=run.id)
    assert "is ready" not in texts(test)
    finish_map(run, plan_analysis(kind="tsne"))
    test.run()
    assert chosen(test) == "UMAP · by epoch"
    assert "t-SNE is ready." in texts(test)
    next(button for button in test.button if button.label == "Show it").click().run()
    assert chosen(test) == "t-SNE"
    assert "is ready" not in texts(test)


def test_the_menu_closes_after_starting_and_the_started_map_is_shown(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    finish_map(run, plan_analysis(kind="umap"))
    monkeypatch.setattr("udml_core.work.jobs.launch.launch", lambda *_: None)
    test = opened("explore", run=run.id)
    test.session_state["new-map"] = True
    test.button(key="new-compute").click().run()
    assert not test.exception
    assert test.session_state["new-map"] is False
    (started,) = list_analyses(run, TSNE)
    shutil.rmtree(started.folder)
    finish_map(run, started_spec := plan_analysis(kind="tsne"))
    assert started_spec.id == started.id
    test.run()
    assert chosen(test) == "t-SNE"


def test_two_layouts_of_one_map_start_at_different_embeddings(run: Run) -> None:
    for address, expected in (({}, (2, 0)), ({"frame": "0"}, (0, 2)), ({"frame": "1"}, (1, 0)),
                              ({"frame": "0.6"}, (1, 0)), ({"frame": "1.5"}, (2, 0)),
                              ({"frame": "1", "frame2": "1"}, (1, 1))):
        test = opened("explore", run=run.id, map=epochs_map(run), compare="frame", **address)
        assert not test.exception
        assert tuple(cursor["value"] for cursor in cursors(test)) == expected
        assert cursors(test)[0]["words"] == ["before training", "epoch 1", "after training"]


def test_a_map_of_one_embedding_offers_no_other_of_it(run: Run) -> None:
    one = finish_map(run, plan_analysis(kind="umap", frames=("final",)))
    test = opened("explore", run=run.id, map=one.id, compare="frame")
    assert not test.exception
    assert len(components(test, "scatter")) == 1
    assert "Other embedding" not in test.selectbox(key="choose-compare").options


def test_the_panel_of_the_selection_offers_actions(run: Run) -> None:
    token = f"{run.dataset().fingerprint[:6]}:3.7.11"
    test = opened("explore", run=run.id, map=whole_map(run), selected=token, picked="7", panel="selected")
    assert "**3 images selected**" in texts(test)
    links = {(link.label, link.proto.query_string) for link in test.get("page_link")}
    assert ("Search", f"run={run.id}&gallery=all&add=3.7.11") in links
    query = next(query for label, query in links if label == "Label")
    assert f"run={run.id}" in query
    assert "3.7.11" in query
    assert [tile["id"] for tile in components(test, "gallery")[0]["tiles"]["list"]] == [3, 7, 11]


@pytest.mark.parametrize("name", ["frozen", "initial", "refined"])
def test_density_is_measured_in_the_embedding_that_the_map_shows(name: str, run: Run) -> None:
    scope = "test" if name == "refined" else "all"
    if name == "refined":
        name = keep(run, plan_analysis(kind="refine", recipe="whiten:k=4+average:k=4"), _no_report).id
    shown = load_map(run, keep(run, plan_analysis(kind="pca", scope=scope, frames=(name,)), _no_report).id)
    images = shown.projection.indices
    rows = Frames(run, run.dataset).frame(name).take(images)
    expected = np.linalg.norm(rows[:, None] - rows[shown.neighbors], axis=2)
    np.testing.assert_allclose(_distances(run, shown.map_id, 0), expected, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["", "grid-of-"])
def test_excluded_images_leave_the_view_until_all_are_shown_again(layout: str, run: Run) -> None:
    pca = whole_map(run)
    keep(run, plan_analysis(kind="grid", source=pca, frame="final"), _no_report)
    prefix = run.dataset().fingerprint[:6]
    test = opened("explore", run=run.id, map=f"{layout}{pca}", selected=f"{prefix}:3.7.11", panel="selected")
    assert the_map(test)["count"] == 1797
    test.button(key="explore-exclude").click().run()
    assert not test.exception
    assert the_map(test)["count"] == 1794
    assert test.query_params["excluded"] == f"{prefix}:3.7.11"
    assert "3 images excluded from view" in texts(test)
    assert "images selected" not in texts(test)
    test.button(key="explore-undo").click().run()
    assert the_map(test)["count"] == 1797
    assert "3 images selected" in texts(test)
    assert "excluded" not in test.query_params
    assert test.button(key="explore-undo").disabled
    test.button(key="explore-redo").click().run()
    assert the_map(test)["count"] == 1794
    test.button(key="explore-map-all").click().run()
    assert the_map(test)["count"] == 1797
    test.button(key="explore-undo").click().run()
    assert the_map(test)["count"] == 1794


def test_a_link_with_exclusions_of_another_data_set_shows_all_images(run: Run) -> None:
    for token in ("000000:1.2", "nonsense", f"{run.dataset().fingerprint[:6]}:99999"):
        assert the_map(opened("explore", run=run.id, map=whole_map(run), excluded=token))["count"] == 1797


def test_a_map_without_some_images_keeps_positions_colors_and_neighbors_together() -> None:
    positions = np.arange(10.0).reshape(5, 2)
    layout = Layout(np.array([2, 4, 6, 8, 9]), positions, "m", (0, 0, 9, 9), np.array([[1], [2], [3], [4], [0]]))
    rest, color = without_excluded(layout, Color("c", np.array([5, 6, 7, 8, 9])), np.array([4, 5]))
    np.testing.assert_array_equal(rest.indices, [2, 6, 8, 9])
    np.testing.assert_array_equal(rest.positions, positions[[0, 2, 3, 4]])
    np.testing.assert_array_equal(color.values, [5, 7, 8, 9])
    np.testing.assert_array_equal(rest.neighbors, [[-1], [2], [3], [0]])
    assert rest.bounds is None
    assert without_excluded(layout, color, layout.indices)[0] is layout


def test_a_chosen_grid_computes_itself_while_the_map_stays(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[AnalysisSpec] = []
    monkeypatch.setattr("udml_core.work.jobs.analyse", lambda _run, spec, **_: started.append(spec))
    test = opened("explore", run=run.id, map=f"grid-of-{whole_map(run)}", frame="0")
    assert not test.exception
    assert [(spec.kind, spec.source, spec.frame) for spec in started] == [("grid", whole_map(run), "initial")]
    assert the_map(test)["grid"] is None
    assert the_map(test)["count"] > 0
    test.run()
    assert len(started) == 1, "a grid that was cancelled must not come back"
    test.button(key="grid-compute").click().run()
    assert len(started) == 2


def test_two_grids_stand_beside_each_other(run: Run) -> None:
    source = whole_map(run)
    for frame in ("initial", "final"):
        keep(run, plan_analysis(kind="grid", source=source, frame=frame), _no_report)
    test = opened("explore", run=run.id, map=f"grid-of-{source}", compare="frame")
    assert not test.exception
    first, second = components(test, "scatter")
    assert first["grid"] is not None
    assert second["grid"] is not None
    assert first["label"] == "Grid of PCA, after training, 1,797 images"
    assert "before training" in second["label"]


def test_unlabeled_images_without_training_are_colored_by_groups_and_by_density(unlabeled: Run) -> None:
    shown = load_map(unlabeled, list_analyses(unlabeled, PCA)[0].id)
    choices = colorings(shown)
    assert list(choices)[:3] == ["group", "density", "outlier score"]
    assert "neighbors kept" not in choices, "frozen features keep all neighbors"
    groups = similar_groups(unlabeled.embeddings("final"), 10)
    assert choices["group"]().values.tolist() == groups[shown.projection.indices].tolist()
    distances = density.neighbor_distances(unlabeled.embeddings("final"), shown.neighbors)
    np.testing.assert_allclose(choices["density"]().values, density.density(distances))
    np.testing.assert_allclose(choices["outlier score"]().values, density.outlier_score(distances, shown.neighbors))
    test = opened("explore", run=unlabeled.id)
    assert not re.search(r"half\.|png\.", texts(test)), "a file name is said once, and no half without halves"
    color = the_map(test)["color"]
    assert (color["label"], color["kind"]) == ("group", "category")
    assert len(set(groups.tolist())) == len(color["names"]) == 10
    members, dataset = np.flatnonzero(groups == 0), unlabeled.dataset()
    typical = dataset.names[members[from_center(unlabeled.embeddings("final")[members])[0]]].rsplit("/", 1)[-1]
    assert color["names"][0] == f"like {typical}", "only the groups of Label have numbers"
    assert [dataset.names[image].rsplit("/", 1)[-1] for image in color["pictures"]] == [
        name.removeprefix("like ") for name in color["names"]], "and the legend shows that image"


def test_the_quick_map_of_unlabeled_images_is_colored_by_groups(unlabeled: Run, tmp_path: Path,
                                                                monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "runs"))
    run = Run(Path(shutil.copytree(unlabeled.folder, tmp_path / "runs" / unlabeled.id)))
    for analysis in list_analyses(run):
        shutil.rmtree(analysis.folder)
    test = opened("explore", run=run.id)
    assert not test.exception
    color = the_map(test)["color"]
    assert (color["label"], len(color["names"])) == ("group", 10), "not one color for all, as all images train and test"


def test_labeled_images_are_colored_by_class_and_pseudo_labels_are_offered(run: Run) -> None:
    choices = list(colorings(load_map(run, list_analyses(run, PCA)[0].id)))
    assert choices[0] == "class"
    assert {"cluster", "density", "outlier score", "neighbors kept"} <= set(choices)
    assert the_map(opened("explore", run=run.id, map=whole_map(run), color="density"))["color"]["label"] == "density"


def test_assigned_labels_spread_on_the_map_and_color_unlabeled_images_first(unlabeled: Run) -> None:
    dataset, split = unlabeled.dataset(), load_split(unlabeled)
    shown = load_map(unlabeled, list_analyses(unlabeled, PCA)[0].id)
    assert SPREAD not in colorings(shown)
    left, right = split.train[:2].tolist()
    try:
        for image, name in ((left, "left"), (right, "right")):
            assign(dataset, [image], name)
        color = colorings(shown)[SPREAD]()
        assert next(iter(colorings(shown))) == SPREAD
        assert color.names == ("left", "right")
        values = dict(zip(shown.projection.indices.tolist(), color.values.tolist(), strict=True))
        assert (values[left], values[right]) == (0, 1)
        assert set(color.values.tolist()) <= {-1, 0, 1}
        assert (color.values >= 0).sum() == 2, "two labels vouch for no further image"
        vectors = np.asarray(unlabeled.embeddings("final"))
        first = vectors[:, vectors.std(axis=0).argmax()]
        for side, name in ((first < np.median(first), "left"), (first >= np.median(first), "right")):
            images = np.flatnonzero(side)[::3].tolist()
            assign(dataset, images, name, certainties=[0.5] * len(images))
        values = colorings(shown)[SPREAD]().values
        assert (values >= 0).sum() > 1.5 * len(first[::3]), "checked names vouch for most of the other images"
        assert {0, 1} <= set(values.tolist())
    finally:
        log_path_of(dataset, "labels").unlink()


def test_curves_are_drawn_when_their_part_is_opened(run: Run) -> None:
    test = opened("explore", run=run.id, map=epochs_map(run), frame="1")
    assert not test.get("plotly_chart")
    test.session_state["map-curves"] = True
    test.run()
    assert "Clusters at this epoch" in texts(test)
    assert test.get("plotly_chart")


def test_the_map_of_all_images_of_a_run_needs_no_image_that_the_run_excludes(
        run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert map_frame.whole_map(run) is not None
    monkeypatch.setattr(map_frame, "load_split", lambda _: SimpleNamespace(excluded=np.array([0, 5])))
    monkeypatch.setattr(map_frame, "covering_map", lambda _, indices: indices)
    assert np.array_equal(map_frame.whole_map(run), np.setdiff1d(np.arange(1797), [0, 5]))


def test_explore_names_a_map_that_was_stopped_and_leaves_a_race_to_its_own_page(run: Run) -> None:
    create_analysis(run, plan_analysis(kind="umap")).write_status(Status(state="stopped", message="Stopped."))
    create_analysis(run, plan_analysis(kind="advice", budget=2.0, serves="first"), state="stopped")
    test = opened("explore", run=run.id)
    (warning,) = test.warning
    assert "UMAP" in warning.value
    assert "is stopped. Resume it" in warning.value, "which it says once"
    next(button for button in test.button if button.label == "Remove").click().run()
    assert not test.warning


def test_interrupted_maps_are_resumed_without_a_click_and_shown_as_queued(
        run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Path] = []
    monkeypatch.setattr("udml_core.work.jobs.start_maps", started.append)
    monkeypatch.setattr(follow_ups, "BEGINS", 0.0)  # the run has finished just now
    follow_ups.want(run, "maps")
    test = opened("explore", run=run.id)
    assert "Queued: " in texts(test)
    assert "t-SNE" in texts(test).split("Queued: ")[1].split(". ")[0]
    assert started == [run.folder.parent]
    test.run()
    assert started == [run.folder.parent], "once a visit"
    test.button(key=f"maps-{run.id}").click().run()
    assert started == [run.folder.parent] * 2
    test.button(key=f"no-maps-{run.id}").click().run()
    assert "Queued: " not in texts(test)
    assert not follow_ups.wants(run, "maps")


def test_maps_that_follow_lie_over_no_page(run: Run) -> None:
    follow_ups.want(run, "maps")
    with locks.held(follow_ups.mapper_lock(run.folder.parent), 0):
        assert "follow in the background" not in texts(opened("explore", run=run.id))
