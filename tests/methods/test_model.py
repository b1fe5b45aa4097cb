"""Images from outside: embedded exactly as the images of the data set, at every size and with views."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from udml_core.base.arrays import Array
from udml_core.base.errors import UserError
from udml_core.data import inference
from udml_core.data.dataset import Dataset, FileImages, UserImage
from udml_core.data.encoders import Encoder, EncoderSpec
from udml_core.data.encoders.graphs import Graph
from udml_core.data.features import features_of, features_of_some
from udml_core.data.refinement_views import average_features, views_of_step
from udml_core.methods import Embedder
from udml_core.methods.model import Model
from udml_core.numerics.refinement.recipe import Views

NAMES = ("noisy.jpg", "small.png")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """A noisy photograph of 12 megapixels, and a small picture."""
    folder, random = tmp_path_factory.mktemp("photos"), np.random.default_rng(0)
    coarse = Image.fromarray(random.integers(0, 256, (9, 12, 3), dtype=np.uint8)).resize((4000, 3000))
    noise = random.integers(-128, 129, (3000, 4000, 3), dtype=np.int16)
    noisy = Image.fromarray(np.clip(np.asarray(coarse) + noise, 0, 255).astype(np.uint8))
    noisy.save(folder / NAMES[0], quality=85)
    noisy.resize((90, 70)).save(folder / NAMES[1])
    return Dataset("photos", "Photos", FileImages(folder, NAMES), None, (), "photos", 3000, False, NAMES)


@pytest.fixture
def model(dataset: Dataset) -> Model:
    return Model(Embedder(Encoder(EncoderSpec(backbone="squeezenet", size=96))).eval(), lambda: dataset)


def sent(dataset: Dataset, index: int) -> UserImage:
    """Return an image of the data set as a user sends its file."""
    assert isinstance(dataset.images, FileImages)
    return UserImage((dataset.images.root / dataset.images.files[index]).read_bytes(), "mine.jpg")


def cosine(row: Array, other: Array) -> float:
    return float(row @ other / np.linalg.norm(row) / np.linalg.norm(other))


def test_a_photograph_from_outside_has_the_embedding_of_its_copy_in_the_data_set(model: Model,
                                                                                dataset: Dataset) -> None:
    stored = features_of_some(dataset, model.embedder.encoder, np.arange(2))
    for index in range(2):
        assert cosine(model.embed(sent(dataset, index)), model.embedder.apply_head(stored)[index]) > 0.999999
    whole = model.embed(dataset.images[0])
    assert cosine(whole, model.embedder.apply_head(stored)[0]) < 0.9999, "the size of the decoding matters here"


def test_views_from_outside_have_the_mean_of_the_stored_views(model: Model, dataset: Dataset) -> None:
    views = views_of_step(Views())
    stored = model.embedder.apply_head(average_features(dataset, model.embedder.encoder, views, cached=False))
    assert cosine(model.embed(sent(dataset, 0), views), stored[0]) > 0.9999
    assert cosine(model.embed(sent(dataset, 0)), stored[0]) < 0.9999


@pytest.mark.slow
def test_the_engine_of_the_stored_features_embeds_images_from_outside(
        dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path))
    monkeypatch.setattr(inference, "WORTH_SECONDS", 0.0)
    encoder, used = Encoder(EncoderSpec(backbone="squeezenet", size=40)), []
    stored = features_of(dataset, encoder)
    run_graph = Graph.__call__
    monkeypatch.setattr(Graph, "__call__", lambda graph, images: used.append(len(images)) or run_graph(graph, images))
    model = Model(Embedder(Encoder(encoder.spec)).eval(), lambda: dataset)
    assert cosine(model.embed(sent(dataset, 0)), model.embedder.apply_head(stored)[0]) > 0.999999
    assert used == [1], "a single image by ONNX Runtime; the engines are not compared again"


def test_a_file_that_is_not_an_image_is_named(model: Model, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="mine must be an image"):
        model.embed(UserImage(b"text", "mine"))
    with pytest.raises(UserError, match="is a folder"):
        model.embed(UserImage(tmp_path, "mine"))
