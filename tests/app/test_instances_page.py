"""The page Instances, the similarity charts on Runs, and σ on the map, through Streamlit's AppTest."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pages.parts.maps.coloring import colorings
from pages.parts.maps.frame import load_map
from tests.app.opening import opened, texts
from tests.running import worked, write_digits
from udml_core.data.splits import make_split
from udml_core.exploration import instances as views
from udml_core.numerics.explanations import LatentLayer, Uncertainty
from udml_core.runs import Run
from udml_core.runs.analyses import list_analyses
from udml_core.runs.analyses.kinds.pca import PCA
from udml_core.runs.tasks import Status

FIELDS = {"dimension": 8, "epochs": 2, "learning_rate": 0.01}
NONSENSE = ({"picked": "-3", "temperature": "0", "eta": "nan", "draw": "-1", "among": "none", "representation": "w",
             "moment": "9"}, {"picked": "1e12", "draw": "1e30"})
pytestmark = pytest.mark.usefixtures("own_places")


@pytest.fixture(scope="module")
def run(places: Path) -> Run:
    return worked(places / "runs", method="pslr", fields=FIELDS)


@pytest.fixture(scope="module")
def unlabeled(places: Path) -> Run:
    folder = str(write_digits(places / "flat", 60, by_class=False))
    return worked(places / "runs", method="isif", dataset=folder, split=None, fields=FIELDS | {"epochs": 1})


@pytest.fixture(scope="module")
def neighbors(places: Path) -> Run:
    """A run whose graph layer mixes an image with its neighbors, without a latent z."""
    return worked(places / "runs", method="pslr", fields=FIELDS | {"epochs": 1, "graph": "neighbors", "latent": False})


def charts(test: Any) -> list[str]:
    """Return the titles of the charts on a page."""
    return [json.loads(chart.proto.spec)["layout"]["title"]["text"] for chart in test.get("plotly_chart")]


def numbers(text: str) -> tuple[float, float, float]:
    """Read the softmax after training from a page.

    Returns:
        The share of the other view in percent, the number of competitors, and the share of the class in percent.
    """
    match = re.search(r"view has \*\*([\d.]+) %\*\*.*competitors is \*\*([\d.,]+)\*\* of "
                      r".*\*\*([\d.]+) %\*\* belongs", text)
    assert match, text
    return float(match[1]), float(match[2].replace(",", "")), float(match[3])


@pytest.mark.parametrize("representation", ["latent", "instance"])
def test_the_page_shows_the_softmax_of_the_image_in_the_address(representation: str, run: Run) -> None:
    split, labels = make_split(run.dataset(), "seen"), run.dataset().labels
    index = int(split.train[7])
    text = texts(opened("instances", run=run.id, picked=str(index), representation=representation, temperature="0.2",
                        eta="5", among="half"))
    assert "D sums over 2m − 2 other views" in text
    compared = "the latent z" if representation == "latent" else "the embedding x"
    assert f"The cosine of the two views in {compared} is" in text
    rows = np.asarray(run.embeddings("final"))
    layer = next(record for record in run.explanations(2) if isinstance(record, LatentLayer))
    if representation == "latent":
        rows = np.maximum(rows @ layer.weight, 0)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    cosine = re.search(r"two views in [a-z ]+ is \*\*(-?\d\.\d+)\*\* after", text)
    assert cosine
    others = split.train[split.train != index]
    weights = np.exp(rows[others] @ rows[index] / 0.2)
    whole = np.exp(float(cosine[1]) / 0.2) + 5 * weights.sum()
    shown, competitors, of_class = numbers(text)
    assert shown == pytest.approx(100 * np.exp(float(cosine[1]) / 0.2) / whole, abs=0.11)
    shares = weights / weights.sum()
    assert competitors == pytest.approx(np.exp(-(shares * np.log(shares)).sum()), rel=1e-3)
    assert of_class == pytest.approx(100 * shares[labels[others] == labels[index]].sum(), abs=0.06)


def test_tau_sets_the_number_of_competitors_and_eta_their_weight(run: Run) -> None:
    def shown(**query: str) -> tuple[float, float, float]:
        return numbers(texts(opened("instances", run=run.id, picked="5", among="half", **query)))

    default, small_tau, large_eta = shown(), shown(temperature="0.02"), shown(eta="50")
    assert small_tau[1] < default[1] == large_eta[1]
    assert large_eta[0] < default[0]


def test_the_address_sets_the_draw_of_views_and_batch(run: Run) -> None:
    def shown(**query: str) -> tuple[float, float, float]:
        return numbers(texts(opened("instances", run=run.id, picked="5", **query)))

    assert shown(draw="1") == shown(draw="1") != shown(draw="2")
    test = opened("instances", run=run.id, picked="5", draw="1")
    next(button for button in test.button if button.label == "Draw again").click().run()
    assert not test.exception
    assert numbers(texts(test)) == shown(draw="2")


def test_invalid_values_in_the_address_are_ignored(run: Run) -> None:
    for query in NONSENSE:
        test = opened("instances", run=run.id, **query)
        assert not test.exception
        assert 0 <= numbers(texts(test))[0] <= 100


def test_without_classes_the_texts_mention_none(unlabeled: Run) -> None:
    test = opened("instances", run=unlabeled.id)
    assert not test.exception
    assert "same class" not in texts(test)
    page = opened("runs", run=unlabeled.id, section="neighbors")
    assert not page.exception
    assert "there are no classes" in texts(page)
    assert "Do former neighbors stay near?" in texts(page)
    assert not [title for title in charts(page) if "AUC" in title], "its positives would be the neighbors from before"


def test_classes_of_one_image_have_no_positives(places: Path) -> None:
    folder = places / "singles"
    for position, path in enumerate(sorted(write_digits(places / "loose", 12, by_class=False).iterdir())):
        (folder / f"class {position:02}").mkdir(parents=True, exist_ok=True)
        shutil.copy(path, folder / f"class {position:02}")
    alone = worked(places / "runs", method="pca", dataset=str(folder), split="all", fields={"dimension": 4})
    test = opened("runs", run=alone.id, section="neighbors")
    assert not test.exception
    assert "All images: no image here has another image of its class" in texts(test)
    assert not [title for title in charts(test) if "AUC" in title]
    assert "the charts do not show how new images would behave" in texts(test)
    assert "overfitting" not in texts(test)


@pytest.mark.parametrize(("method", "fields", "words"), [
    ("isif", {"form": "printed"}, "sums over m − 1 other views"), ("nce", {}, "no second view and no η")])
def test_the_training_objective_follows_the_method_and_form(method: str, fields: dict[str, Any], words: str,
                                                            places: Path) -> None:
    check_objective(worked(places / "runs", method=method, fields=FIELDS | {"epochs": 1} | fields), words)


def test_the_training_objective_leaves_out_neighbors(neighbors: Run) -> None:
    check_objective(neighbors, "images in the batch except its mutual nearest neighbors")


def check_objective(run: Run, words: str) -> None:
    test = opened("instances", run=run.id)
    assert not test.exception
    assert words in texts(test)
    assert "2m − 2" not in texts(test)
    assert "The cosine of the two views in the embedding is" in texts(test)


def test_runs_show_both_halves_of_x_and_z_at_the_epoch_in_the_address(run: Run) -> None:
    test = opened("runs", run=run.id, section="neighbors", moment="1")
    assert not test.exception
    labels, sample = np.asarray(run.dataset().labels), run.sample_indices()
    layers = [next(record for record in run.explanations(epoch) if isinstance(record, LatentLayer)) for epoch in (0, 1)]
    same = views.same_class(labels[sample])
    x = [views.pair_similarities(run.epoch_sample(epoch), same).auc for epoch in (1, 0)]
    z = [views.pair_similarities(views.latent_rows(run.epoch_sample(epoch), layers[epoch].weight), same).auc
         for epoch in (1, 0)]
    titles = [title for title in charts(test) if "AUC" in title]
    assert [title.split(":")[0] for title in titles] == ["Training half, x", "Test half, x", "Training half, z",
                                                         "Test half, z"]
    assert titles[1] == f"Test half, x: AUC {x[0]:.3f} (before {x[1]:.3f})"
    assert titles[3] == f"Test half, z: AUC {z[0]:.3f} (before {z[1]:.3f})"
    overview = opened("runs", run=run.id)
    (evaluation,) = [frame.value for frame in overview.dataframe if frame.value.index.name == "Measure"]
    assert {"Weighted kNN, k = 200", "Linear probe"} <= set(evaluation.index)
    assert "After training, latent z" in evaluation.columns


def test_similarity_charts_say_when_retrieval_does_not_rank_by_cosine(
        run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = "chosen by cosine, although retrieval ranks embeddings without unit length by Euclidean distance"
    assert words not in texts(opened("runs", run=run.id, section="neighbors"))
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "runs"))
    plain, unit = (worked(tmp_path / "runs", fields={"dimension": 8, "epochs": 1, "unit_length": unit_length})
                   for unit_length in (False, True))
    assert words in texts(opened("runs", run=plain.id, section="neighbors"))
    assert words not in texts(opened("runs", run=unit.id, section="neighbors"))


def test_a_run_without_embeddings_of_the_training_half_shows_the_test_half(
        run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = Run(shutil.copytree(run.folder, tmp_path / "runs" / run.id))
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "runs"))
    for path in [*copy.folder.glob("epochs/*/trained.npy"), *copy.folder.glob("epochs/*/latent.npz")]:
        path.unlink()
    test = opened("runs", run=copy.id, section="neighbors")
    assert not test.exception
    assert [title.split(":")[0] for title in charts(test) if "AUC" in title] == ["Test half"]
    assert "train again to see them" in texts(test)
    assert not opened("instances", run=copy.id).exception


def test_a_finished_run_is_shown_while_another_run_is_running(run: Run, tmp_path: Path,
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (run.id, "20990101-000000-pslr-aaaaaa"):
        shutil.copytree(run.folder, tmp_path / "runs" / name)
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "runs"))
    other = Run(tmp_path / "runs" / "20990101-000000-pslr-aaaaaa")
    other.write_status(Status(state="running", epochs=9, ticket=0.0))
    with other.lock().acquire():
        test = opened("runs", run=run.id, section="neighbors")
    assert not test.exception
    assert "mprec@K as a table" in [part.label for part in test.expander]


def test_sigma_colors_the_training_half_at_the_epoch_in_the_address(run: Run) -> None:
    (plane,) = list_analyses(run, PCA)
    test = opened("explore", run=run.id, color="uncertainty", sigma="1")
    assert not test.exception
    sigma = next(record for record in run.explanations(1) if isinstance(record, Uncertainty)).sigma
    assert f"{sigma.min():.4g} to {sigma.max():.4g}" in texts(test)
    shown = load_map(run, plane.id, 1)
    color = colorings(shown)["uncertainty"]()
    train = make_split(run.dataset(), "seen").train
    last = next(record for record in run.explanations(2) if isinstance(record, Uncertainty)).sigma
    np.testing.assert_array_equal(color.values[train], last)
    assert np.isnan(np.delete(color.values, train)).all()


def test_only_runs_with_sigma_offer_it_as_a_color(unlabeled: Run) -> None:
    (plane,) = list_analyses(unlabeled, PCA)
    assert "uncertainty" not in colorings(load_map(unlabeled, plane.id, 1))
    test = opened("explore", run=unlabeled.id, color="uncertainty")
    assert not test.exception
    assert "Most and least certain" not in texts(test)


def test_the_map_explains_the_blur_of_sigma(neighbors: Run) -> None:
    text = texts(opened("explore", run=neighbors.id, color="uncertainty"))
    assert "no latent z" in text
    assert "neighbors" in text


def test_without_runs_the_page_suggests_to_train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "none"))
    test = opened("instances")
    assert not test.exception
    assert "Train a run on the page **Lab**" in texts(test)
    assert test.button(key="open-lab")
