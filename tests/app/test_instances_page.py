"""The page Instances, similarities on Runs and Map, and σ on the map, through Streamlit's AppTest."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pages.parts.map.shown_map import colorings, load_map
from tests.app.opening import opened, texts
from tests.running import worked, write_digits
from udml_core.analyses import list_analyses
from udml_core.data.splits import make_split
from udml_core.explanations import LatentLayer, Uncertainty
from udml_core.exploration import instances as views
from udml_core.runs import Run
from udml_core.tasks import Status

FIELDS = {"dimension": 8, "epochs": 2, "learning_rate": 0.01}
pytestmark = pytest.mark.usefixtures("own_places")


@pytest.fixture(scope="module")
def run(places: Path) -> Run:
    return worked(places / "runs", method="pslr", fields=FIELDS)


@pytest.fixture(scope="module")
def unlabeled(places: Path) -> Run:
    folder = str(write_digits(places / "flat", 60, by_class=False))
    return worked(places / "runs", method="isif", dataset=folder, split=None, fields=FIELDS | {"epochs": 1})


def charts(test: Any) -> list[str]:
    """The titles of the charts on a page."""
    return [json.loads(one.proto.spec)["layout"]["title"]["text"] for one in test.get("plotly_chart")]


def numbers(text: str) -> tuple[float, float, float]:
    """What the own other view holds and how many compete, after training, and the share of its class, in percent."""
    found = re.search(r"view holds \*\*([\d.]+) %\*\*.*as \*\*([\d.,]+)\*\* equally.*\*\*(\d+) %\*\* lies", text)
    assert found, text
    return float(found[1]), float(found[2].replace(",", "")), float(found[3])


@pytest.mark.parametrize("representation", ["latent", "instance"])
def test_it_shows_the_softmax_of_the_image_in_the_link(representation: str, run: Run) -> None:
    split, labels = make_split(run.dataset(), "seen"), run.dataset().labels
    index = int(split.train[7])
    text = texts(opened("instances", run=run.id, picked=str(index), representation=representation, temperature="0.2",
                        eta="5", among="half"))
    assert "its D sums over 2m − 2 such views" in text
    assert f"Of {'z' if representation == 'latent' else 'x'}, the two views' cosine is" in text
    rows = np.asarray(run.embeddings("final"))
    layer = next(one for one in run.explanations(2) if isinstance(one, LatentLayer))
    if representation == "latent":
        rows = np.maximum(rows @ layer.weight, 0)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    own = re.search(r"cosine is \*\*(-?\d\.\d+)\*\* after", text)
    assert own
    others = split.train[split.train != index]
    weights = np.exp(rows[others] @ rows[index] / 0.2)
    whole = np.exp(float(own[1]) / 0.2) + 5 * weights.sum()
    shown, competitors, of_class = numbers(text)
    assert shown == pytest.approx(100 * np.exp(float(own[1]) / 0.2) / whole, abs=0.11)
    shares = weights / weights.sum()
    assert competitors == pytest.approx(np.exp(-(shares * np.log(shares)).sum()), rel=1e-3)
    assert of_class == pytest.approx(100 * shares[labels[others] == labels[index]].sum(), abs=0.6)


def test_tau_chooses_who_competes_and_eta_how_hard(run: Run) -> None:
    def shown(**query: str) -> tuple[float, float, float]:
        return numbers(texts(opened("instances", run=run.id, picked="5", among="half", **query)))

    usual, sharper, harder = shown(), shown(temperature="0.02"), shown(eta="50")
    assert sharper[1] < usual[1] == harder[1]
    assert harder[0] < usual[0]


def test_draws_and_batches_are_those_of_the_link(run: Run) -> None:
    def shown(**query: str) -> tuple[float, float, float]:
        return numbers(texts(opened("instances", run=run.id, picked="5", **query)))

    assert shown(draw="1") == shown(draw="1") != shown(draw="2")
    test = opened("instances", run=run.id, picked="5", draw="1")
    next(one for one in test.button if one.label == "Draw again").click().run()
    assert not test.exception
    assert numbers(texts(test)) == shown(draw="2")


@pytest.mark.parametrize("query", [{"picked": "-3"}, {"picked": "1e12"}, {"temperature": "0"}, {"eta": "nan"},
                                   {"draw": "-1"}, {"draw": "1e30"},
                                   {"among": "none"}, {"representation": "w"}, {"moment": "9"}])
def test_nonsense_in_the_address_is_survived(query: dict[str, str], run: Run) -> None:
    test = opened("instances", **({"run": run.id} | query))
    assert not test.exception
    assert 0 <= numbers(texts(test))[0] <= 100


def test_without_classes_nothing_is_said_of_them(unlabeled: Run) -> None:
    test = opened("instances", run=unlabeled.id)
    assert not test.exception
    assert "own class" not in texts(test)
    page = opened("runs", run=unlabeled.id)
    assert not page.exception
    assert "there are no classes" in texts(page)
    assert any(title.startswith("All images: AUC") for title in charts(page))


def test_where_no_image_has_another_of_its_class_that_is_said(places: Path) -> None:
    folder = places / "singles"
    for position, path in enumerate(sorted(write_digits(places / "loose", 12, by_class=False).iterdir())):
        (folder / f"class {position:02}").mkdir(parents=True, exist_ok=True)
        shutil.copy(path, folder / f"class {position:02}")
    alone = worked(places / "runs", method="pca", dataset=str(folder), split="all", fields={"dimension": 4})
    test = opened("runs", run=alone.id)
    assert not test.exception
    assert "All images: no image here has another of its class" in texts(test)
    assert not [title for title in charts(test) if "AUC" in title]
    assert "nothing here tells how new ones would lie" in texts(test)
    assert "learnt by heart" not in texts(test)


@pytest.mark.parametrize(("method", "fields", "words"), [
    ("isif", {"form": "printed"}, "sums over m − 1 such views"), ("nce", {}, "no second view and no η"),
    ("pslr", {"graph": "neighbors", "latent": False}, "image in the batch but its mutual nearest neighbors")])
def test_what_training_asks_is_told_by_the_runs_method_and_form(method: str, fields: dict[str, Any], words: str,
                                                                places: Path) -> None:
    test = opened("instances", run=worked(places / "runs", method=method, fields=FIELDS | {"epochs": 1} | fields).id)
    assert not test.exception
    assert words in texts(test)
    assert "2m − 2" not in texts(test)
    assert "Of the embedding, the two views' cosine is" in texts(test)


def test_runs_show_both_halves_of_x_and_z_at_the_epoch_in_the_link(run: Run) -> None:
    test = opened("runs", run=run.id, moment="1")
    assert not test.exception
    labels, sample = np.asarray(run.dataset().labels), run.sample_indices()
    layers = [next(one for one in run.explanations(epoch) if isinstance(one, LatentLayer)) for epoch in (0, 1)]
    same = views.same_class(labels[sample])
    x = [views.similarities(run.epoch_sample(epoch), same).auc for epoch in (1, 0)]
    z = [views.similarities(views.latent_rows(run.epoch_sample(epoch), layers[epoch].weight), same).auc
         for epoch in (1, 0)]
    found = [title for title in charts(test) if "AUC" in title]
    assert [title.split(":")[0] for title in found] == ["Training half, x", "Test half, x", "Training half, z",
                                                        "Test half, z"]
    assert found[1] == f"Test half, x: AUC {x[0]:.3f} (start {x[1]:.3f})"
    assert found[3] == f"Test half, z: AUC {z[0]:.3f} (start {z[1]:.3f})"
    (evaluation,) = [one.value for one in test.dataframe if one.value.index.name == "Measure"]
    assert {"Weighted kNN, k = 200", "Linear probe"} <= set(evaluation.index)
    assert "Final, latent z" in evaluation.columns


def test_a_run_of_before_the_training_half_was_kept_shows_the_other(run: Run, tmp_path: Path,
                                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    copy = Run(shutil.copytree(run.folder, tmp_path / "runs" / run.id))
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "runs"))
    for path in [*copy.folder.glob("epochs/*/trained.npy"), *copy.folder.glob("epochs/*/latent.npz")]:
        path.unlink()
    test = opened("runs", run=copy.id)
    assert not test.exception
    assert [title.split(":")[0] for title in charts(test) if "AUC" in title] == ["Test half"]
    assert "train again to see it" in texts(test)
    assert not opened("instances", run=copy.id).exception


def test_a_finished_run_is_shown_while_another_goes_on(run: Run, tmp_path: Path,
                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (run.id, "20990101-000000-pslr-aaaaaa"):
        shutil.copytree(run.folder, tmp_path / "runs" / name)
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "runs"))
    other = Run(tmp_path / "runs" / "20990101-000000-pslr-aaaaaa")
    other.write_status(Status(state="running", epochs=9, ticket=0.0))
    with other.lock().acquire():
        test = opened("runs", run=run.id)
    assert not test.exception
    assert "Evaluation on the test half" in texts(test)


def test_sigma_colours_those_that_trained_at_the_epoch_in_the_link(run: Run) -> None:
    (plane,) = list_analyses(run, "pca")
    test = opened("map", run=run.id, color="uncertainty", sigma="1")
    assert not test.exception
    sigma = next(one for one in run.explanations(1) if isinstance(one, Uncertainty)).sigma
    assert f"from {sigma.min():.4g} to {sigma.max():.4g}" in texts(test)
    shown = load_map(run, plane.id, 1)
    color = colorings(shown)["uncertainty"]()
    train = make_split(run.dataset(), "seen").train
    last = next(one for one in run.explanations(2) if isinstance(one, Uncertainty)).sigma
    np.testing.assert_array_equal(color.values[train], last)
    assert np.isnan(np.delete(color.values, train)).all()


def test_only_runs_that_keep_sigma_offer_it(unlabeled: Run) -> None:
    (plane,) = list_analyses(unlabeled, "pca")
    assert "uncertainty" not in colorings(load_map(unlabeled, plane.id, 1))
    test = opened("map", run=unlabeled.id, color="uncertainty")
    assert not test.exception
    assert "Most and least certain" not in texts(test)


def test_sigma_is_told_of_what_it_blurs(places: Path) -> None:
    fields = FIELDS | {"epochs": 1, "latent": False, "graph": "neighbors"}
    without = worked(places / "runs", method="pslr", fields=fields)
    text = texts(opened("map", run=without.id, color="uncertainty"))
    assert "embedding x, as the run has no latent z" in text
    assert "Training mixes an image with its neighbors" in text


def test_without_any_run_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "none"))
    test = opened("instances")
    assert not test.exception
    assert "Train one, then come back" in texts(test)
