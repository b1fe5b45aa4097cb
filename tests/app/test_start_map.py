"""The map of Lab before a start shows the images and the colors of the map during the training."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import streamlit as st

from pages.parts.train import start_map
from pages.parts.train.angles import shares_beyond
from pages.parts.train.found_before import found_rows
from pages.parts.train.start_map import Drawn, framed
from pages.parts.train.watched import color_of, first_frame, watch_images
from tests.app.opening import opened, texts
from tests.running import worked
from udml_core.data import catalog
from udml_core.data.splits import fixed_sample
from udml_core.runs import RunRequest, Spec
from udml_core.runs.baselines import JUDGED
from udml_core.work import jobs


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The session's choices."""
    state: dict[str, str] = {}
    monkeypatch.setattr(st, "session_state", state)
    return state


def planned(method: str, split: str = "seen") -> Spec:
    request = RunRequest.make({"dataset": "digits", "method": method, "backbone": "pixels", "split": split,
                               "fields": {"dimension": 8} if method == "rpml" else {}})
    return jobs.plan(request, catalog.load("digits"))


def test_images_and_colors_stay_when_a_run_has_begun(root: Path, chosen: dict[str, str]) -> None:
    run = worked(root, fields={"dimension": 16, "epochs": 3})
    spec, dataset = run.spec(), run.dataset()
    before = start_map.first_map(spec, dataset).result(60)
    watched = watch_images(run)
    assert watched.trained
    assert watched.images.tolist() == before.images.tolist()
    assert before.images.tolist() == fixed_sample(spec.halves(dataset).train, JUDGED).tolist()
    assert first_frame(watched) is before
    clusters = start_map.clusters_before(before, spec)
    assert clusters is not None
    assert color_of(watched, 1).values.tolist() == dataset.labels[before.images].tolist(), "classes unless one chooses"
    chosen[start_map.COLORS] = start_map.CLUSTERS
    colors = start_map.cluster_color(before, spec, before.of_images(clusters.assignment))
    for epoch in run.epoch_numbers():
        during = color_of(watched, epoch)
        assert (during.label, during.names) == (colors.label, colors.names)
        assert during.values.tolist() == colors.values.tolist()
    chosen[start_map.COLORS] = start_map.CLASSES
    assert color_of(watched, 1).values.tolist() == dataset.labels[before.images].tolist()


@pytest.mark.parametrize(("split", "count", "words"), [
    ("all", 1000, "a sample of 1,000 of the 1,797 images"), ("all", 1797, "1,797 images"),
    ("seen", 100, "a sample of 100 of the 898 images of the training half")])
def test_lab_says_that_it_shows_a_sample(split: str, count: int, words: str) -> None:
    spec, dataset = planned("rpml", split), catalog.load("digits")
    assert start_map.drawn_words(spec, dataset, count).replace(
        f"{len(spec.halves(dataset).train):,}", "1,797" if split == "all" else "898") == words


def test_the_line_above_the_map_says_that_it_is_a_sample() -> None:
    start_map.first_map(planned("rpml", "all"), catalog.load("digits")).result(60)
    test = opened("train", dataset="digits", method="rpml", preset="default", backbone="pixels", split="all")
    assert "**Before training:** a sample of 1,000 of the 1,797 images, similar ones near" in texts(test)


def test_another_k_changes_the_clusters_and_not_the_layout(chosen: dict[str, str]) -> None:
    dataset, specs = catalog.load("digits"), [planned("rpml")]
    specs += [specs[0].model_copy(update={"fields": specs[0].fields | {"n_neighbors": 10}})]
    drawn = [start_map.first_map(spec, dataset).result(60) for spec in specs]
    assert drawn[0] is drawn[1], "the images stay where they are, and nothing is computed again"
    assert start_map.map_name(specs[0]) == start_map.map_name(specs[1])
    counts = [start_map.clusters_before(shown, spec) for shown, spec in zip(drawn, specs, strict=True)]
    assert counts[0] is not None
    assert counts[1] is not None
    assert counts[0].clusters.count < counts[1].clusters.count, "fewer neighbors form more clusters"


def test_compared_runs_show_test_images_by_class(root: Path) -> None:
    watched = watch_images(worked(root, fields={"dimension": 16, "epochs": 3}), compares=True)
    assert not watched.trained
    assert set(watched.images) <= set(watched.run.spec().halves(watched.dataset).test)


@pytest.mark.parametrize(("method", "half"), [("rpml", "training"), ("whiten", "test")])
def test_the_map_shows_the_half_whose_embedding_a_run_shows(method: str, half: str) -> None:
    spec, dataset = planned(method), catalog.load("digits")
    halves = spec.halves(dataset)
    shown = start_map.first_map(spec, dataset).result(60)
    own = halves.train if half == "training" else halves.test
    assert shown.images.tolist() == fixed_sample(own, JUDGED).tolist()
    assert start_map.half_words(spec) == f" of the {half} half"
    assert (shown.sample is None) == (half == "test")
    assert np.sqrt((shown.positions ** 2).sum(axis=1).mean()) == pytest.approx(1, abs=1e-3), "at the scale of epochs"


def test_what_the_search_finds_before_training_are_the_nearest_of_each_query(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.repeat(np.eye(5, dtype=np.float32), 5, axis=0)  # five groups of five equal images
    images = 100 + np.arange(25)
    drawn = Drawn(images, np.zeros((25, 2)), rows, None, catalog.load("digits"))
    found = found_rows(drawn)
    assert [query for query, _ in found] == [100, 106, 112, 118, 124], "spread over the images"
    asked = np.arange(len(drawn.dataset)) != 124
    monkeypatch.setattr("pages.parts.train.found_before.asked_images", lambda _: asked)
    assert [query for query, _ in found_rows(drawn)] == [100, 105, 111, 117, 123], "a black image is no query"
    monkeypatch.setattr("pages.parts.train.found_before.asked_images", lambda _: np.zeros_like(asked))
    assert found_rows(drawn) == found, "unless all are"
    for query, near in found:
        group = (query - 100) // 5
        assert sorted([query, *near]) == [100 + 5 * group + number for number in range(5)]


def test_few_points_beyond_the_view_lie_at_its_edge() -> None:
    positions = np.random.default_rng(0).uniform(-1, 1, (1000, 2))
    positions[3] = (9, -9)
    layout = framed("map", np.arange(1000), positions)
    assert layout.bounds == (-1.25, -1.25, 1.25, 1.25)
    assert layout.positions[3].tolist() == [1.25, -1.25]
    assert np.array_equal(layout.positions[4:], positions[4:])


def test_the_shares_beyond_alpha_fall_from_all_to_none() -> None:
    dataset, spec = catalog.load("digits"), planned("rpml")
    before = start_map.first_map(spec, dataset).result(60)
    clusters = start_map.clusters_before(before, spec)
    assert clusters is not None
    shares = shares_beyond(clusters)
    assert len(shares) == 91
    assert shares[15] == 100 * clusters.violations(15)
    assert shares == sorted(shares, reverse=True)
    assert (shares[0], shares[90]) == (100, 0)
