"""NML, ML and KML against literal loops and each other, on real images."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from udml_core.base.arrays import Array
from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.encoders import Encoder, choose_spec
from udml_core.data.features import pixels_of
from udml_core.data.given.pair_sets import PairSet
from udml_core.data.inference import embed_pixels
from udml_core.data.splits import make_split
from udml_core.data.training_data import TrainingData, UndeclaredLabelsError
from udml_core.methods import Embedder, Epoch, Head, Method, Setting, is_normalized
from udml_core.methods.embedder import KernelHead, histograms
from udml_core.methods.ml_kml import KML, ML
from udml_core.methods.nml import NML
from udml_core.methods.shared.pair_method import PairMethod
from udml_core.numerics.evaluation import mean_precision_at_k
from udml_core.numerics.explanations import Pairs, Prototypes
from udml_core.numerics.losses.pair_hinge import squared_distances
from udml_core.numerics.sampling import balanced_draw, generator, label_pairs


@cache
def halves(seed: int = 0) -> tuple[TrainingData, Array, Array, Encoder]:
    """Return the training half with pairs, test features and labels, and the encoder."""
    dataset = catalog.load("digits")
    encoder = Encoder(choose_spec("pixels", dataset.native_size, dataset.gray))
    features = embed_pixels(encoder, np.array(pixels_of(dataset, encoder)))
    split = make_split(dataset, "seen")
    assert dataset.labels is not None
    drawn = label_pairs(torch.from_numpy(dataset.labels[split.train]), 20_000, generator(seed, 0))
    data = TrainingData(torch.from_numpy(features[split.train]), given_pairs=PairSet(*(part.numpy() for part in drawn)))
    return data, features[split.test], dataset.labels[split.test], encoder


def setting() -> Setting:
    return Setting(0, torch.device("cpu"), halves()[3])


def last_epoch(method: Method) -> Epoch:
    *_, last = method.fit(halves()[0], setting())
    return last


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [8, 32])
@pytest.mark.parametrize("method", [NML, ML, KML], ids=lambda method: method.card.name)
def test_the_median_squared_distance_of_pairs_starts_at_the_bias(method: type[PairMethod], dimension: int) -> None:
    built = method(dimension=dimension)
    data = halves()[0]
    embedding = built.initial(data, setting()).embed_features(data.features.numpy())
    median = squared_distances(torch.from_numpy(embedding), data.pairs[0]).median()
    assert float(median) == pytest.approx(built.bias, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "dimension", "bias", "reached"), [
    ("chi2", 32, 0.1, True), ("chi2", 32, 0.15, True), ("chi2", 16, 0.073, True), ("chi2", 4, 0.1, False),
    ("chi2", 4, 10.0, False),
    ("intersection", 32, 0.05, True), ("intersection", 32, 0.1, False), ("hellinger", 4, 0.1, True),
    ("hellinger", 1, 1.0, True)])
def test_random_rows_start_at_the_bias_on_the_rising_side_or_at_the_peak(
        kernel: str, dimension: int, bias: float, reached: bool) -> None:
    """Compare the median d² of 400 pairs with a dense scan of factors."""
    whole = halves()[0]
    assert whole.given_pairs is not None
    few = PairSet(whole.given_pairs.pairs[::50], whole.given_pairs.same[::50])
    data = TrainingData(whole.features, given_pairs=few)
    method = NML(kernel=kernel, dimension=dimension, bias=bias, beginning="random")
    problem = method._problem(data, setting())
    rows = method._first_rows(problem, data, 0)

    def median(factor: float) -> float:
        return float(problem.hinge.squared(problem.points, factor * rows, data.pairs[0]).median())

    peak = max(median(factor) for factor in np.geomspace(0.01, 100, 150))
    assert (peak >= bias) == reached
    if reached:
        assert median(1) == pytest.approx(bias, rel=0.01)
        assert median(0.9) < median(1) < median(1.05)
    else:
        assert median(1) == pytest.approx(peak, rel=0.01)


@pytest.mark.parametrize("batch", [1, 10])
def test_a_batch_takes_the_sum_of_its_pairs_steps_in_the_algorithm_of_the_paper(batch: int) -> None:
    """Compute the steps of the first hundred pairs in a literal loop; the paper's batch is one pair."""
    data = halves()[0]
    method = NML(dimension=4, batch=batch, epochs=1)
    head = method.initial(data, setting()).head
    assert isinstance(head, KernelHead)
    rows, points = head.rows.double(), histograms(data.features).double()
    pairs, same = data.pairs
    rate = method.learning_rate * float(head.rows.mean())
    total = torch.zeros_like(rows)
    for number, pair in enumerate(balanced_draw(same, 10_000, generator(0, 1))[:100].tolist(), 1):
        x, z = points[pairs[pair, 0]], points[pairs[pair, 1]]
        shares = [torch.where(point > 0, point / (point + rows).clamp_min(1e-30), 0.0) for point in (x, z)]
        difference = 2 * (rows * (shares[0] - shares[1])).sum(1)
        y = 1 if same[pair] else -1
        if method.margin - y * (method.bias - float(difference.square().sum())) > 0:
            total += 2 * y * difference[:, None] * 2 * (shares[0].square() - shares[1].square())
        if number % batch == 0:
            rows, total = (rows - rate * total).clamp_min(0), torch.zeros_like(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("udml_core.methods.shared.pair_method.balanced_draw",
                      lambda *arguments: balanced_draw(*arguments)[:100])
        ours = last_epoch(method).state["rows"]
    torch.testing.assert_close(ours.double(), rows, rtol=1e-3, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("method", [
    NML(dimension=16, epochs=5), ML(dimension=16, epochs=5),
    NML(dimension=16, epochs=5, kernel="hellinger", learning_rate=0.03),
    NML(dimension=16, epochs=2, kernel="intersection"), NML(dimension=16, epochs=5, kernel="rbf", learning_rate=0.03),
    KML(dimension=16, epochs=5)], ids=lambda method: f"{method.card.name}-{getattr(method, 'kernel', '')}")
def test_training_raises_mean_precision_over_the_start_for_seen_classes(method: Method) -> None:
    data, features, labels, _ = halves()
    before, after = (mean_precision_at_k(embedder.embed_features(features), labels)[10]
                     for embedder in (method.initial(data, setting()), last_epoch(method).embedder))
    assert after > before + 0.005, f"mprec@10 {100 * before:.1f} to {100 * after:.1f}"


def test_prototypes_stay_non_negative_and_are_explained_with_the_pairs() -> None:
    epoch = last_epoch(NML(dimension=8, epochs=2))
    used, prototypes = epoch.explanations
    assert isinstance(used, Pairs)
    assert isinstance(prototypes, Prototypes)
    assert (prototypes.rows >= 0).all()
    data = halves()[0]
    embedding = torch.from_numpy(epoch.embedder.embed_features(data.features.numpy()))
    torch.testing.assert_close(used.after, squared_distances(embedding, used.pairs), rtol=1e-3, atol=1e-5)
    y = torch.where(used.same, 1.0, -1.0)
    torch.testing.assert_close(used.argument, 0.02 - y * (0.1 - used.after))
    first = torch.from_numpy(NML(dimension=8).initial(data, setting()).embed_features(data.features.numpy()))
    torch.testing.assert_close(used.before, squared_distances(first, used.pairs), rtol=1e-3, atol=1e-5)


def test_kml_embeds_by_kernels_with_all_training_images() -> None:
    epoch = last_epoch(KML(dimension=8, epochs=1))
    head = epoch.embedder.head
    assert isinstance(head, KernelHead)
    assert len(head.rows) == len(halves()[0])
    used = epoch.explanations[0]
    assert isinstance(used, Pairs)
    embedding = torch.from_numpy(epoch.embedder.embed_features(halves()[0].features.numpy()))
    torch.testing.assert_close(used.after, squared_distances(embedding, used.pairs), rtol=1e-2, atol=1e-3)


def test_further_pairs_continue_from_a_state() -> None:
    method, data = NML(dimension=8, epochs=2), halves()[0]
    *_, last = method.fit(data, setting())
    further = TrainingData(data.features[:300], given_pairs=PairSet(
        *(part.numpy() for part in label_pairs(torch.arange(300) % 7, 1000, generator(1, 0)))))
    epochs = list(method.continue_fit(further, setting(), last.state, 2))
    assert [epoch.number for epoch in epochs] == [3, 4]
    *_, whole = NML(dimension=8, epochs=4).fit(data, setting())
    *_, continued = method.continue_fit(data, setting(), last.state, 2)
    assert torch.equal(continued.state["rows"], whole.state["rows"])
    narrow = TrainingData(data.features[:, :50], given_pairs=data.given_pairs)
    with pytest.raises(UserError, match="features of width 64, as at the start; got 50"):
        next(iter(method.continue_fit(narrow, setting(), last.state, 1)))


def test_negative_features_are_rejected_or_split() -> None:
    rows = halves()[0].features - 4
    data = TrainingData(rows, given_pairs=halves()[0].given_pairs)
    with pytest.raises(UserError, match=r"at least 0; the smallest is -4\..*set the field 'negative' to 'split'"):
        next(iter(NML(dimension=4).fit(data, setting())))
    *_, last = NML(dimension=4, epochs=1, negative="split").fit(data, setting())
    assert last.state["rows"].shape == (4, 128)
    assert last.embedder.embed_features(rows.numpy()).shape == (len(rows), 4)


@pytest.mark.parametrize(("method", "images", "message"), [
    (NML(margin=0.2), 100, "NML.margin must be at most the bias 0.1, got 0.2"),
    (NML(dimension=64), 50, "at most the number of images 50"), (ML(dimension=65), 100, "at most"),
    (KML(dimension=8), 30_000, "accepts at most 10,000 images, got 30,000")])
def test_impossible_fields_are_rejected_before_training(method: Method, images: int, message: str) -> None:
    with pytest.raises(UserError, match=message):
        method.check(images, 64)


def test_data_without_pairs_raises_an_error_for_pairs() -> None:
    with pytest.raises(UndeclaredLabelsError, match="supervision = 'pairs'"):
        TrainingData(halves()[0].features).pairs  # noqa: B018


@pytest.mark.parametrize("head", [
    Head(torch.randn(64, 4)), Head(torch.randn(64, 4), torch.randn(64), normalized=False),
    KernelHead(torch.rand(5, 64), "chi2", 1.0), KernelHead(torch.rand(5, 128), "rbf", 2.0, split=True),
    KernelHead(torch.rand(5, 64), "intersection", 1.0, weight=torch.randn(5, 3))])
def test_a_stored_head_keeps_its_kind(head: Head | KernelHead, tmp_path: Path) -> None:
    path = tmp_path / "embedder.safetensors"
    embedder = Embedder(halves()[3], head)
    embedder.save(path)
    features = halves()[1]
    np.testing.assert_array_equal(Embedder.load(path).embed_features(features), embedder.embed_features(features))
    assert is_normalized(path) == head.normalized == Embedder.load(path).head.normalized


def test_a_file_of_the_first_version_is_read_and_an_unknown_kind_of_head_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "embedder.safetensors"
    encoder = halves()[3]
    embedder = Embedder(encoder, Head(torch.randn(64, 4), torch.randn(64)))
    embedder.save(path)
    metadata = {"encoder": encoder.spec.model_dump_json(), "trained": "false"}
    tensors = load_file(path)
    save_file(tensors, path, metadata)
    assert is_normalized(path)
    np.testing.assert_array_equal(Embedder.load(path).embed_features(halves()[1]), embedder.embed_features(halves()[1]))
    for head in ('{"kind": "tree"}', '{"kind": "kernel"}', "[]", '{"kind": "linear", "depth": 3}'):
        save_file(tensors, path, metadata | {"head": head})
        with pytest.raises(UserError, match="must be an embedder written by a run"):
            Embedder.load(path)
