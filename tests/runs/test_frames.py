"""Each name of an embedding stands for its own rows, images, model and words."""

from __future__ import annotations

import numpy as np
import pytest

from tests.running import worked
from udml_core.base.errors import UserError
from udml_core.data.features import features_path
from udml_core.data.inference import embed_pixels
from udml_core.methods import Embedder
from udml_core.runs import Run
from udml_core.runs.analyses import plan_analysis
from udml_core.runs.search import Frames, frame_words, trained_name
from udml_core.work.workers.analyse import keep

NAMES = ("frozen", "initial", "final", "0", "1", "2")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run whose embeddings differ: `final` is epoch 2, and no epoch equals another."""
    return worked(tmp_path_factory.mktemp("runs"), fields={"dimension": 8, "epochs": 2, "steps": 3})


def rows_on_disk(run: Run, name: str) -> np.ndarray:
    """Return the rows that a name stands for, read without the library's readers."""
    files = {"initial": "embeddings-initial.npy", "final": "embeddings.npy"}
    if name == "frozen":
        features = np.load(features_path(run.dataset(), run.spec().encoder))
        return features / np.linalg.norm(features, axis=1, keepdims=True)
    return np.load(run.folder / files.get(name, f"epochs/{int(name) if name.isdecimal() else 0:04d}/sample.npy"))


@pytest.mark.parametrize("name", NAMES)
def test_a_name_stands_for_its_own_rows_and_images(name: str, run: Run) -> None:
    others = [rows_on_disk(run, other) for other in NAMES if other not in (name, "frozen")]
    frame, rows = Frames(run, run.dataset).frame(name), rows_on_disk(run, name)
    indices = run.sample_indices() if name.isdecimal() else np.arange(len(rows))
    np.testing.assert_array_equal(frame.indices, indices)
    np.testing.assert_allclose(frame.rows, rows, atol=1e-6)
    assert not any(rows.shape == other.shape and np.allclose(rows, other, atol=1e-3) for other in others)
    chosen = indices[[40, 3, 11]]
    np.testing.assert_allclose(Frames(run, run.dataset).vectors(name, chosen), rows[[40, 3, 11]], atol=1e-6)


@pytest.mark.parametrize("name", ["frozen", "initial", "final"])
def test_the_model_of_a_name_embeds_an_image_as_its_rows(name: str, run: Run) -> None:
    frame, dataset = Frames(run, run.dataset).frame(name), run.dataset()
    pixels = frame.model.embedder.encoder.prepare(dataset.images[12])[None]
    np.testing.assert_allclose(embed_pixels(frame.model.embedder, pixels)[0], rows_on_disk(run, name)[12], atol=1e-4)
    np.testing.assert_allclose(frame.index.embed(dataset.images[12]), rows_on_disk(run, name)[12], atol=1e-4)


def test_a_refinement_has_its_own_rows_and_no_model(run: Run) -> None:
    analyses = [keep(run, plan_analysis(kind="refine", recipe=recipe), lambda _share, _step: None)
                for recipe in ("whiten", "average:k=4")]
    frames = Frames(run, run.dataset)
    for analysis in analyses:
        with np.load(analysis.folder / "result.npz") as stored:
            np.testing.assert_array_equal(frames.frame(analysis.id).rows, stored["embedding"])
            np.testing.assert_array_equal(frames.vectors(analysis.id, stored["indices"][[9, 2]]),
                                          stored["embedding"][[9, 2]])
        assert frames.frame(analysis.id).note.startswith("computed from 359 test images")
    with pytest.raises(UserError, match="a refinement has no model"):
        assert frames.frame(analyses[0].id).model


def test_an_unknown_name_lists_the_names(run: Run) -> None:
    for name in ("7", "best", "0001", ""):
        with pytest.raises(UserError, match=f"has no embedding '{name}'. Choose one of frozen, initial, final, 1, 2"):
            Frames(run, run.dataset).frame(name)


def test_an_epoch_compares_as_the_model_of_its_time(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(Run, "is_normalized", lambda _run, which: asked.append(which) or False)
    for name in ("0", "1", "initial", "final"):
        assert Frames(run, run.dataset).frame(name).index.measure == "distance"
    assert asked == ["initial", "final", "initial", "final"]
    assert Frames(run, run.dataset).frame("frozen").index.measure == "cosine similarity"


def test_a_name_in_words(run: Run) -> None:
    words = {"frozen": "frozen features", "initial": "before training", "0": "before training",
             "final": "after training", "1": "epoch 1", "refine-0123456789ab": "refined"}
    for name, expected in words.items():
        assert frame_words(name) == expected
        assert frame_words(name, run) == ("raw pixels" if name == "frozen" else expected)
    assert (frame_words("2"), frame_words("2", run)) == ("epoch 2", "after training")
    assert [trained_name(run, name) for name in ("0", "1", "2", "frozen")] == ["initial", "1", "final", "frozen"]
    assert Frames(run, run.dataset).frame("2").words == "after training"


def test_models_are_told_apart(run: Run) -> None:
    first, last = (Embedder.load(run.folder / file) for file in ("initial.safetensors", "embedder.safetensors"))
    assert not np.allclose(first.head.weight, last.head.weight), "else a swap of the models could not be noticed"
