"""The page Explore: every panel on a real small run, one current image, one selection."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from pages.parts.draw.palette import MISS
from pages.parts.explore.map_view import shown_images
from pages.parts.explore.neighborhood import run_geometry
from pages.parts.explore.panels import PANELS
from pages.parts.explore.toolbar import MapChoice
from pages.parts.explore.workbench import Workbench, interesting_images
from pages.parts.maps.frame import load_map
from pages.parts.maps.layouts import EPOCHS, MOVING, MapLayout
from pages.parts.shell.address import drop_foreign_parameters
from pages.parts.shell.epoch_images import EpochImages
from pages.parts.shell.interesting import MOST, MOST_TEST, recorded_images
from pages.parts.shell.selection import Selection, select, selection
from pages.parts.triplets.stored import StoredTriplets
from tests.app.opening import opened, switched, texts
from tests.app.test_opinions_pages import without_labels
from tests.app.test_refine_page import components, tiles
from tests.running import worked
from udml_core.data.given.exclusions import exclude, undo
from udml_core.data.selections import store_selection
from udml_core.data.splits import fixed_sample
from udml_core.exploration.clusters import cluster_purity
from udml_core.exploration.map_content import Color
from udml_core.exploration.neighborhoods import nearest_rows
from udml_core.numerics.explanations import Affinities, Clusters, Pairs, Triplets
from udml_core.runs import Run, runs_folder
from udml_core.runs.analyses import Analysis, finished_maps, plan_analysis
from udml_core.runs.analyses.kinds.refine import Refinement
from udml_core.runs.search import Retrieval
from udml_core.runs.used import use_search
from udml_core.work.workers import analyse

pytestmark = pytest.mark.usefixtures("own_places")


@pytest.fixture(scope="module")
def rpml(places: Path) -> Run:
    return worked(places / "runs", fields={"dimension": 16, "epochs": 2, "alpha": 40.0})


@pytest.fixture(scope="module")
def ssdml(places: Path) -> Run:
    return worked(places / "runs", method="ssdml", labels_per_class=2, fields={"dimension": 16, "epochs": 1})


@pytest.fixture(scope="module")
def nml(places: Path) -> Run:
    return worked(places / "runs", method="nml", fields={"dimension": 6, "epochs": 2}, most_pairs=3000)


@pytest.fixture(scope="module")
def isif(places: Path) -> Run:
    return worked(places / "runs", method="isif", fields={"dimension": 8, "epochs": 1})


@pytest.fixture(scope="module")
def frozen(places: Path) -> Run:
    return worked(places / "runs", method="frozen")


def explored(run: Run, **query: Any) -> AppTest:
    test = opened("explore", run=run.id, **{name: str(value) for name, value in query.items()})
    assert not test.exception
    assert not test.error
    return test


def panels(test: AppTest) -> list[str]:
    return [option.content for option in test.button_group(key="explore-panel").proto.options]


def deep_link(test: AppTest) -> tuple[str, dict[str, str]]:
    link = next(element.proto for element in test.get("page_link") if element.proto.label == "Open in depth")
    query = dict(part.split("=", 1) for part in link.query_string.split("&") if part)
    return link.page, query


def bench_of(run: Run, focus: int, frame: str = "final") -> Workbench:
    return Workbench(run, run.dataset(), focus, frame)


def test_a_run_offers_only_the_panels_that_it_can_fill(rpml: Run, ssdml: Run, nml: Run, isif: Run,
                                                       frozen: Run) -> None:
    always = ["Neighbors", "Neighborhood"]
    shown = explored(frozen)
    assert panels(shown) == always
    assert any("✓ hit: same class" in element.proto.body for element in shown.get("html"))
    assert "**Raw pixels** · " in texts(shown)
    assert panels(explored(rpml)) == ["Neighbors", "Cluster", "Neighborhood", "Triplets"]
    assert panels(explored(ssdml)) == [*always, "Triplets", "Labels"]
    assert panels(explored(nml)) == [*always, "Pairs"]
    assert panels(explored(isif)) == [*always, "Instance"]


def test_neighbors_are_counted_without_excluded_images_and_a_plain_search_has_one_name() -> None:
    plain = worked(runs_folder(), method="frozen", split="all")
    dataset = plain.dataset()
    exclude(dataset, [3, 4])
    shown = texts(explored(plain, panel="neighbors"))
    words = rf"\*\*Raw pixels\*\* · \d+ of 10 hits among {len(dataset) - 2:,} of {len(dataset):,} images"
    assert re.search(words, shown)
    without_labels(plain)
    assert "**The plain search** · " in texts(explored(plain, panel="neighbors"))
    refined = analyse.keep(plain, plan_analysis(Refinement, recipe="whiten"), lambda _share, _step: None)
    assert "The refined search" not in texts(explored(plain, panel="neighbors")), "one that the user did not choose"
    use_search(plain, refined.id)
    shown = texts(explored(plain, panel="neighbors"))
    assert 0 < shown.index("**The refined search** · ") < shown.index("**The plain search** · ")


def test_without_a_choice_the_image_whose_neighbors_changed_most_is_shown(rpml: Run) -> None:
    dataset = rpml.dataset()
    index = interesting_images(rpml)[0]
    shown = texts(explored(rpml))
    assert dataset.labels is not None
    assert f"**{dataset.class_names[dataset.labels[index]]}**  \n:small[{dataset.names[index]}. Training half." in shown
    assert "Typical of the images whose results change" in shown
    assert "Typical of the images whose results change" not in texts(explored(rpml, picked=interesting_images(rpml)[1]))
    strip = tiles(opened("retrieval", run=rpml.id), "Sample queries")
    assert {tile["id"] for tile in strip} == set(interesting_images(rpml)), "Retrieval shows the same images"


@pytest.mark.parametrize("method", ["rpml", "ssdml", "nml"])
def test_every_panel_shows_the_first_image_itself(method: str, request: pytest.FixtureRequest) -> None:
    run: Run = request.getfixturevalue(method)
    for panel in [name for name, panel in PANELS.items() if panel.is_offered(bench_of(run, 0))]:
        assert "The current image is not" not in texts(explored(run, panel=panel)), panel


def test_without_records_the_first_image_belongs_to_the_test_half(isif: Run, nml: Run) -> None:
    assert len(recorded_images(isif)) == 0
    assert np.isin(interesting_images(isif), isif.sample_indices()).all()
    first, test = interesting_images(nml), bench_of(nml, 0).split.test
    assert np.isin(first[:MOST - MOST_TEST], recorded_images(nml)).all()
    assert np.isin(first[MOST - MOST_TEST:], test).all(), "Home shows images of the test half"
    assert len(first) == MOST


def test_deep_pages_open_with_the_image_that_explore_shows_first(rpml: Run) -> None:
    index = interesting_images(rpml)[0]
    name = rpml.dataset().caption(index)
    assert name in texts(opened("neighborhoods", run=rpml.id))
    anchors = next(header for header in components(opened("triplets", run=rpml.id), "gallery")
                   if header["label"].startswith("Anchors"))
    assert anchors["chosen"] == index
    sizes = re.findall(r"\*\*([\d,]+) images\*\*", texts(explored(rpml, panel="cluster")))
    assert int(sizes[0].replace(",", "")) > 1, "a cluster of one image says nothing"


def test_neighbors_are_those_of_a_search_in_all_images(rpml: Run) -> None:
    retrieval, stored = Retrieval(rpml), EpochImages(rpml, bench_of(rpml, 0).split.train).indices
    index = int(np.setdiff1d(np.arange(len(retrieval.dataset)), stored)[0])  # other images are searched in every epoch
    shown = texts(explored(rpml, picked=index, map="pca-now"))
    for which, words in (("frozen", "Raw pixels"), ("final", "After training")):
        hits = retrieval.search_item(index, 10, which, "all")  # type: ignore[arg-type]
        count = sum(bool(hit.correct) for hit in hits)
        assert f"**{words}** · {count} of 10 hits among all {len(retrieval.dataset):,} images" in shown
    assert "Nearest first by cosine similarity and distance, searched in all images." in shown
    assert "Distances of different embeddings have different scales." in shown


def test_the_epoch_cursor_changes_the_neighbors(rpml: Run) -> None:
    index = int(rpml.sample_indices()[4])
    shown = texts(explored(rpml, picked=index, map="pca-epochs", frame=1))
    assert "**Epoch 1** ·" in shown
    stored, labels = EpochImages(rpml, bench_of(rpml, 0).split.train), rpml.dataset().labels
    assert labels is not None
    points, row = stored.embedding(1), int(np.searchsorted(stored.indices, index))
    order = np.argsort(((points - points[row]) ** 2).sum(axis=1), kind="stable")
    ten = stored.indices[order[order != row][:10]]
    count = (labels[ten] == labels[index]).sum()
    assert f"**Epoch 1** · {count} of 10 hits among {len(stored.indices):,} of " in shown
    assert "searched in the images stored for every epoch" in shown
    features = Retrieval(rpml).frame("frozen").rows[stored.indices]
    ten = stored.indices[np.argsort(features @ features[row], kind="stable")[::-1][1:11]]
    assert f"**Raw pixels** · {(labels[ten] == labels[index]).sum()} of 10 hits" in shown


def test_every_epoch_has_images_of_both_halves_with_their_own_embedding(rpml: Run) -> None:
    train = bench_of(rpml, 0).split.train
    stored, trained = EpochImages(rpml, train), rpml.epoch_trained(1)
    assert trained is not None
    own = fixed_sample(train, len(trained))
    np.testing.assert_array_equal(stored.indices, np.union1d(rpml.sample_indices(), own))
    points = stored.embedding(1)
    np.testing.assert_array_equal(points[np.isin(stored.indices, own)], trained)
    np.testing.assert_array_equal(points[np.isin(stored.indices, rpml.sample_indices())], rpml.epoch_sample(1))


def test_the_first_layout_has_the_cursor_right_before_the_map(rpml: Run, frozen: Run) -> None:
    test = explored(rpml)
    names = [element.proto.component_name.removeprefix("udml_") for element in test.get("bidi_component")]
    assert names.index("scatter") == names.index("slider") + 1, names
    slider = components(test, "slider")[0]
    assert slider["play"]
    assert (slider["words"][0], slider["words"][-1], slider["value"]) == ("before training", "after training", 2)
    titles = test.selectbox(key=f"explore-map-{rpml.id}").options
    assert len(set(titles)) == len(titles)
    without = explored(frozen)
    assert without.selectbox(key=f"explore-map-{frozen.id}").options[0] == "PCA", "a run of one epoch has no cursor"
    assert not components(without, "slider")
    words = texts(without)
    assert "change through training about as" not in words
    assert "Before training" not in words, "nothing was trained, so there is one list of neighbors"
    assert "**Raw pixels** · " in words
    header = next(html.proto.body for html in without.get("html") if "run-header" in html.proto.body)
    assert "→" not in header
    assert "<b>raw pixels</b>" in header


def test_cluster_shows_size_and_purity_of_the_images_own_cluster(rpml: Run) -> None:
    bench = bench_of(rpml, 0)
    train, record = bench.split.train, bench.record(Clusters)
    assert record is not None
    assert bench.dataset.labels is not None
    row = 11
    test = explored(rpml, panel="cluster", picked=train[row])
    cluster = record.labels[row]
    purity = 100 * float(cluster_purity(record, bench.dataset.labels[train])[1][cluster])
    assert f"**{(record.labels == cluster).sum():,} images** in this cluster" in texts(test)
    assert f"purity **{purity:.1f} %**" in texts(test)
    assert deep_link(test) == ("explore", {"tool": "clusters", "run": rpml.id, "picked": str(train[row]),
                                       "cluster": str(train[row])})


def test_a_test_image_is_represented_by_the_nearest_training_image(rpml: Run) -> None:
    bench = bench_of(rpml, 0)
    index = int(bench.split.test[3])
    points, train = rpml.embeddings("final"), bench.split.train
    nearest = train[((points[train] - points[index]) ** 2).sum(axis=1).argmin()]
    test = explored(rpml, panel="cluster", picked=index)
    assert f"nearest image that is: **{bench.dataset.caption(int(nearest))}**" in texts(test)
    assert deep_link(test)[1]["picked"] == str(nearest)


def test_neighborhood_counts_members_and_rejected(rpml: Run) -> None:
    test = explored(rpml, panel="neighborhood", picked=7)
    counts = re.findall(r"\*\*(?:Members|Rejected): (\d+)\*\* of (\d+)", texts(test))
    assert sum(int(count) for count, _ in counts) == int(counts[0][1]) == run_geometry(rpml).candidates
    assert deep_link(test)[1] == {"tool": "neighborhoods", "run": rpml.id, "picked": "7"}


def test_triplets_shows_one_of_the_anchors_own_triplets(rpml: Run) -> None:
    bench = bench_of(rpml, 0)
    record = bench.record(Triplets)
    assert record is not None
    anchor = int(bench.split.train[record.anchor[5]])
    own = np.flatnonzero(record.anchor == record.anchor[5])
    _, query = deep_link(explored(rpml, panel="triplets", picked=anchor))
    assert int(query["triplet"]) == own[np.argsort(-record.loss[own], kind="stable")[0]]
    assert query["epoch"] == str(bench.epoch_with(Triplets))
    other = own[-1]
    assert deep_link(explored(rpml, panel="triplets", picked=anchor, triplet=other))[1]["triplet"] == str(other)


def test_labels_shows_an_own_label_or_the_class_that_spreads(ssdml: Run) -> None:
    dataset = ssdml.dataset()
    train = bench_of(ssdml, 0).split.train
    codes = ssdml.spec().few_labels(dataset, train)
    assert codes is not None
    labeled = int(np.flatnonzero(codes >= 0)[0])
    test = explored(ssdml, panel="labels", picked=labeled)
    assert f"This image has the label **{dataset.class_names[codes[labeled]]}**" in texts(test)
    unlabeled = int(train[codes[train] < 0][0])
    assert re.search(r"The class \*\*\d\*\* spreads to this image: \*\*\d+\.\d %\*\* of the walks", texts(
        explored(ssdml, panel="labels", picked=unlabeled)))
    assert deep_link(test)[1]["picked"] == str(labeled)


def test_labels_marks_the_roles_and_counts_the_classes_that_agree(ssdml: Run) -> None:
    record = bench_of(ssdml, 0).record(Affinities)
    assert record is not None
    train, labels = bench_of(ssdml, 0).split.train, ssdml.dataset().labels
    assert labels is not None
    row = 7
    image = int(train[record.points[row]])
    test = explored(ssdml, panel="labels", picked=image)
    order = record.neighbors[row][np.argsort(-record.after[row], kind="stable")]
    half = len(order) // 2
    same = labels[train[order]] == labels[image]
    shown = texts(test)
    positives, negatives = same[:half].sum(), (~same[half:2 * half]).sum()
    assert f"**Positives** in training: {positives} of {half} have this image's class; all positives should" in shown
    assert f"**Negatives** in training: {negatives} of {half} have another class; all negatives should" in shown
    galleries = {header["label"]: header for header in components(test, "gallery")}
    for word, role in (("Positives", "positive"), ("Negatives", "negative")):
        assert {tile["mark"] for tile in galleries[f"{word} by affinity"]["tiles"]["list"]} == {role}


def test_pairs_lists_the_images_own_pairs(nml: Run) -> None:
    bench = bench_of(nml, 0)
    record = bench.record(Pairs)
    assert record is not None
    pairs = bench.split.train[record.pairs]
    index = int(pairs[8, 0])
    own = (pairs == index).any(axis=1)
    test = explored(nml, panel="pairs", picked=index)
    assert f"**Similar pairs: {(own & record.same).sum()}**" in texts(test)
    assert f"**Dissimilar pairs: {(own & ~record.same).sum()}**" in texts(test)
    hardest = pairs[own][np.argmax(record.argument[own])].tolist()
    assert deep_link(test)[1]["pair"] == f"{hardest[0]}.{hardest[1]}"


def test_instance_counts_competitors(isif: Run) -> None:
    test = explored(isif, panel="instance", picked=3)
    half = bench_of(isif, 3).split
    count = len(half.train if 3 in half.train else half.test) - 1
    assert texts(test).count(f"effective competitors of {count:,}") == 2
    assert deep_link(test)[1] == {"tool": "instances", "run": isif.id, "picked": "3"}


def test_next_walks_through_the_interesting_images(rpml: Run) -> None:
    images = interesting_images(rpml)
    test = explored(rpml)
    test.button(key="explore-step-1").click().run()
    assert test.query_params["picked"] == str(images[1])
    test.button(key="explore-step-0").click().run()
    assert int(test.query_params["picked"]) in bench_of(rpml, 0).split.test


def chosen_panel(test: AppTest) -> str:
    assert not test.exception
    return str(test.button_group(key="explore-panel").value)


def test_back_and_forward_restore_the_panel_in_the_address(rpml: Run) -> None:
    test = explored(rpml, panel="cluster")
    test.button_group(key="explore-panel").set_value("triplets").run()
    assert chosen_panel(test) == "triplets", "the user's choice wins over the address before it"
    assert chosen_panel(test.run()) == "triplets"
    for linked, shown in (("cluster", "cluster"), (None, "neighbors"), ("triplets", "triplets")):
        test.query_params.pop("panel", None)
        if linked:
            test.query_params["panel"] = linked
        assert chosen_panel(test.run()) == shown
        assert test.query_params.get("panel") in (linked, [linked])


def test_the_panel_in_the_address_stays_when_the_selection_changed_on_another_page(rpml: Run) -> None:
    dataset = rpml.dataset()
    test = explored(rpml, panel="cluster")
    test.query_params.clear()
    switched(test, "home")
    test.session_state["selection"] = Selection(dataset.fingerprint, np.array([3, 5, 9]), 9)
    test.query_params.update(run=rpml.id, panel="cluster")
    switched(test, "explore")
    assert panels(test)[-1] == "Selection (3)"
    assert chosen_panel(test) == "cluster"


def test_back_and_forward_restore_the_selection_in_the_address(rpml: Run) -> None:
    def selected(test: AppTest) -> list[str]:
        assert not test.exception
        return [name for name in panels(test) if name.startswith("Selection")]

    fingerprint = rpml.dataset().fingerprint
    tokens = {len(ids): f"{fingerprint[:6]}:{store_selection(np.array(ids))}" for ids in ([3, 5, 9], [4, 6])}
    test = explored(rpml)
    test.session_state["selection"] = Selection(fingerprint, np.array([3, 5, 9]), 9)
    assert selected(test.run()) == ["Selection (3)"], "the user's selection wins over the address before it"
    assert test.query_params["selected"] in (tokens[3], [tokens[3]])
    assert selected(test.run()) == ["Selection (3)"]
    for count in (0, 3, 2, 0):
        test.query_params.pop("selected", None)
        if count:
            test.query_params["selected"] = tokens[count]
        assert selected(test.run()) == [f"Selection ({count})"] * bool(count)
        assert ("selected" in test.query_params) == bool(count)


def test_an_older_address_within_a_part_of_the_page_changes_no_selection(monkeypatch: pytest.MonkeyPatch,
                                                                         rpml: Run) -> None:
    state: dict[str, Any] = {"page": "explore"}
    query: dict[str, str] = {}
    monkeypatch.setattr(st, "session_state", state)
    monkeypatch.setattr(st, "query_params", query)
    dataset = rpml.dataset()
    drop_foreign_parameters("explore")
    select(dataset.fingerprint, np.array([3, 5]))
    assert selection(dataset).ids.tolist() == [3, 5]
    query.clear()  # the next movement of a slider began before the browser showed the address
    assert selection(dataset).ids.tolist() == [3, 5]
    assert "selected" in query
    query.clear()
    drop_foreign_parameters("explore")  # Back draws the whole page
    assert selection(dataset).ids.tolist() == []


def test_a_selection_in_the_link_is_offered_with_its_actions(rpml: Run) -> None:
    dataset = rpml.dataset()
    token = f"{dataset.fingerprint[:6]}:{store_selection(np.array([3, 5, 9]))}"
    test = explored(rpml, panel="selected", selected=token)
    assert panels(test)[-1] == "Selection (3)"
    links = {element.proto.label: element.proto for element in test.get("page_link")}
    assert "add=3.5.9" in links["Search"].query_string
    assert "selected=" in links["Label"].query_string
    test.button(key="explore-clear").click().run()
    assert "Selection" not in str(panels(test))
    assert "**Raw pixels**" in texts(test)


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["pca-now", "grid"])
def test_selected_images_are_excluded_from_the_map_or_grid_until_all_are_shown(layout: str, rpml: Run) -> None:
    run, dataset = rpml, rpml.dataset()
    pca = analyse.keep(run, plan_analysis(kind="pca"), lambda _share, _step: None)
    analyse.keep(run, plan_analysis(kind="grid", source=pca.id, frame="final"), lambda _share, _step: None)
    token = f"{dataset.fingerprint[:6]}:{store_selection(np.array([3, 5, 9]))}"
    test = explored(run, map=pca.id if layout == "pca-now" else f"grid-of-{pca.id}", selected=token, panel="selected")
    whole = components(test, "scatter")[0]["count"]
    test.button(key="explore-exclude").click().run()
    assert not test.exception
    assert components(test, "scatter")[0]["count"] == whole - 3
    assert "3 images excluded from view" in texts(test)
    test.button(key="explore-undo").click().run()
    assert components(test, "scatter")[0]["count"] == whole
    test.button(key="explore-redo").click().run()
    test.button(key="explore-map-all").click().run()
    assert components(test, "scatter")[0]["count"] == whole


def test_images_excluded_since_the_run_are_not_on_the_map(rpml: Run) -> None:
    def count() -> int:
        return int(components(explored(rpml), "scatter")[0]["count"])

    whole, gone = count(), range(0, len(rpml.dataset()), 9)
    exclude(rpml.dataset(), gone)  # the map shows a part of the images
    try:
        assert whole - len(gone) <= count() < whole - len(gone) // 2
    finally:
        undo(rpml.dataset())
    assert count() == whole


def test_hidden_images_are_not_among_the_images_of_the_map(rpml: Run) -> None:
    layout = MapLayout("pca-now", "PCA", ("initial", "final"))
    shown = layout.load(rpml, "final")
    none = np.zeros(0, np.int64)
    every, rest = (shown_images(MapChoice(layout, "final", shown, Color("c", none), hidden, None))
                   for hidden in (none, np.array([0, 4])))
    np.testing.assert_array_equal(rest, np.setdiff1d(every, [0, 4]))
    assert len(rest) == len(every) - 2


def test_epsilon_colors_the_map_while_the_panel_of_clusters_is_open(rpml: Run) -> None:
    analyse.keep(rpml, plan_analysis(kind="graph"), lambda *_: None)

    def colors(test: AppTest) -> dict[str, Any]:
        return next(iter(components(test, "scatter")))["color"]

    assert colors(explored(rpml))["label"] == "class"
    counts = []
    for epsilon in ("0.4", "0.65", "0.9"):
        test = explored(rpml, panel="cluster", epsilon=epsilon)
        assert not test.exception
        assert colors(test)["label"] == "cluster"
        words, = re.findall(r"in this cluster, of ([\d,]+) at ε = ([\d.]+)", texts(test))
        assert words[1] == epsilon
        counts.append(int(words[0].replace(",", "")))
        assert deep_link(test)[1].get("epsilon") == (None if epsilon == "0.65" else epsilon)
    assert counts == sorted(counts)
    assert counts[0] < counts[2], "a higher ε splits clusters"


def test_k_and_t_choose_the_members_that_the_map_joins_with_the_image(rpml: Run) -> None:
    pca = finished_maps(rpml)[0]

    def joined(**query: Any) -> list[int]:
        test = explored(rpml, panel="neighborhood", picked=5, map=pca.id, frame=1, **query)
        (mark,) = next(iter(components(test, "scatter")))["marks"]
        return sorted(load_map(rpml, pca.id).projection.indices[mark["lines"]].tolist())

    nearest = nearest_rows(rpml.embeddings("final"), 5, 30)
    assert joined(candidates=30, threshold=0.01) == sorted(nearest.tolist()), "a low T admits all k candidates"
    assert len(joined(candidates=30, threshold=1)) < 30
    assert len(joined(candidates=12, threshold=0.01)) == 12
    assert deep_link(explored(rpml, panel="neighborhood", picked=5, candidates=12))[1]["candidates"] == "12"


def test_alpha_joins_the_violating_triplets_of_the_image_on_the_map(rpml: Run) -> None:
    bench = bench_of(rpml, 0)
    record = bench.record(Triplets)
    assert record is not None
    stored = StoredTriplets(rpml, record)
    anchor = int(np.bincount(stored.images[0]).argmax())
    angles = stored.shape.angle[stored.images[0] == anchor]
    between = round(float(np.median(angles)), 2)
    pca = finished_maps(rpml)[0]  # the map of every epoch has no training images
    joined = {}
    for alpha in (between, 89.0):
        test = explored(rpml, panel="triplets", picked=anchor, alpha=alpha, map=pca.id)
        marks = next(iter(components(test, "scatter")))["marks"]
        joined[alpha] = sum(bool(mark["lines"]) for mark in marks if mark["color"] == MISS)
        assert f"**{(angles > alpha).sum()} of this anchor's {len(angles)} triplets violate" in texts(test)
        assert deep_link(test)[1]["alpha"] == f"{alpha:g}"
    violating = stored.images[2, (stored.images[0] == anchor) & (stored.shape.angle > between)]
    assert joined == {between: len(np.unique(violating)), 89.0: 0}


def test_tau_sets_the_size_of_the_competitors_on_the_map(isif: Run) -> None:
    def sizes(temperature: float) -> list[float]:
        test = explored(isif, panel="instance", picked=3, temperature=temperature)
        return sorted(mark["radius"] for mark in next(iter(components(test, "scatter")))["marks"] if mark["color"])

    low, high = sizes(0.02), sizes(1)
    assert max(low) > 2 * max(high), "a low temperature compares with few images"
    assert max(high) - min(high) < max(low) - min(low)


def test_the_badge_of_a_neighborhood_is_the_quality_that_t_tests(rpml: Run) -> None:
    for threshold in (0.5, 0.9, 0.99):
        test = explored(rpml, panel="neighborhood", picked=7, threshold=threshold)
        for word, is_member in (("Members", True), ("Rejected", False)):
            shown = tiles(test, f"{word} of the linear neighborhood") if f"**{word}: " in texts(test) else []
            tested = [float(tile["badge"]) for tile in shown if tile["badge"] != "always"]
            assert all((value >= threshold) == is_member for value in tested)


def test_gamma_says_how_far_labels_reach_on_the_map(ssdml: Run) -> None:
    def reached(gamma: str) -> tuple[str, bytes]:
        color = next(iter(components(explored(ssdml, panel="labels", gamma=gamma), "scatter")))["color"]
        return color["label"], color["token"]

    values = {gamma: reached(gamma) for gamma in ("0.1", "0.99")}
    assert {label for label, _ in values.values()} == {"spread labels"}
    assert "γ = 0.1" in texts(explored(ssdml, panel="labels", gamma="0.1"))
    assert values["0.1"] != values["0.99"], "another γ assigns other classes"


def test_pca_is_shown_at_once_and_a_finished_map_comes_first(rpml: Run, places: Path) -> None:
    test = explored(rpml)
    layouts = test.selectbox(key=f"explore-map-{rpml.id}")
    assert "PCA" in layouts.options
    assert "PCA · every epoch" in layouts.options
    assert layouts.value == EPOCHS


def test_an_epoch_that_lacks_the_current_image_is_named_in_place_of_its_neighbors(rpml: Run) -> None:
    stored = EpochImages(rpml, bench_of(rpml, 0).split.train).indices
    outside = int(np.setdiff1d(np.arange(len(rpml.dataset())), stored)[0])
    missing = f"stored for {len(stored):,} images, and the current image is not among them"
    assert missing in texts(explored(rpml, map="pca-epochs", frame=1, picked=outside))
    assert missing not in texts(explored(rpml, map="pca-epochs", frame=1, picked=stored[0]))


@pytest.mark.slow
def test_umap_is_shown_as_soon_as_it_is_finished_unless_another_layout_was_chosen(rpml: Run, places: Path) -> None:
    def layout(test: AppTest) -> str:
        return str(test.selectbox(key=f"explore-map-{run.id}").value)

    run = Run(shutil.copytree(rpml.folder, places / "runs" / "20250101-000000-rpml-0000aa"))
    shutil.rmtree(run.folder / "analyses")
    waiting, chosen = opened("explore", run=run.id), opened("explore", run=run.id)
    chosen.selectbox(key=f"explore-map-{run.id}").set_value("pca-now").run()
    assert (layout(waiting), layout(chosen)) == ("pca-epochs", "pca-now")
    umap = analyse.keep(run, plan_analysis(kind="umap"), lambda _share, _step: None)
    assert (layout(waiting.run()), layout(chosen.run())) == (f"{MOVING}{umap.id}", "pca-now")
    _check_epochs_on_a_map(run, umap)


def _check_epochs_on_a_map(run: Run, umap: Analysis) -> None:
    """Check that an early epoch is drawn among its neighbors on the map, and the last epoch as the map itself."""
    layout = MapLayout(f"{MOVING}{umap.id}", "UMAP", ("0", "1", "2"))
    after, early = layout.load(run, "2"), layout.load(run, "1")
    ground = umap.projection()
    np.testing.assert_array_equal(after.layout.positions, ground.positions[ground.frames.index("final")])
    stored = EpochImages(run, bench_of(run, 0).split.train)
    np.testing.assert_array_equal(early.projection.indices, stored.indices, "images without a position are left out")
    points, row = stored.embedding(1), 7
    order = np.argsort(((points - points[row]) ** 2).sum(axis=1), kind="stable")
    ten = stored.indices[order[order != row][:10]]
    np.testing.assert_allclose(early.layout.positions[row], after.layout.positions[ten].mean(axis=0), rtol=1e-4)
    np.testing.assert_array_equal(np.sort(stored.indices[early.neighbors[row]]), np.sort(ten))
    assert (layout.count_left_out(early), layout.count_left_out(after)) == (1797 - len(stored.indices), 0)
    assert layout.draw(early).bounds == layout.draw(after).bounds
    ahead = layout.following(layout.load(run, "0"), "0")
    assert ahead is not None
    np.testing.assert_array_equal(ahead.positions, early.layout.positions)
    assert layout.following(after, "2") is None
    said = texts(opened("explore", run=run.id, map=layout.id, frame="1"))
    assert f"{1797 - len(stored.indices):,} images are left out" in said
    assert "left out" not in texts(opened("explore", run=run.id, map=layout.id))


def test_both_rows_of_neighbors_search_the_same_images_at_every_epoch(rpml: Run) -> None:
    stored = EpochImages(rpml, bench_of(rpml, 0).split.train).indices
    words = f"hits among {len(stored):,} of "
    for frame in range(len(rpml.epoch_numbers())):
        shown = texts(explored(rpml, picked=int(stored[4]), map="pca-epochs", frame=frame))
        assert shown.count(words) == 2, frame


def test_a_map_without_the_current_image_says_so(rpml: Run) -> None:
    stored = EpochImages(rpml, bench_of(rpml, 0).split.train).indices
    outside = int(np.setdiff1d(np.arange(len(rpml.dataset())), stored)[0])
    words = f"is not among the {len(stored):,} images of this map"
    assert f"{rpml.dataset().caption(outside)}, {words}" in texts(explored(rpml, picked=outside, map=EPOCHS))
    assert words not in texts(explored(rpml, picked=stored[0], map=EPOCHS))


def test_nonsense_in_the_link_is_ignored(rpml: Run) -> None:
    test = explored(rpml, picked="nan", map="x", frame="-1", panel="nonsense", color="x", triplet="1e12",
                    selected="a:b:c", source="x")
    assert test.button_group(key="explore-panel").value == "neighbors"
