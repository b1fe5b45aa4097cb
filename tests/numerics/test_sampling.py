"""Triplets, pairs and batches: laws, and a literal loop for semi-hard negatives."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from udml_core.numerics.sampling import (
    balanced_draw,
    cluster_triplets,
    generator,
    label_pairs,
    neighbor_batches,
    pair_batches,
    semi_hard_triplets,
    weighted_edges,
)

labelings = st.lists(st.integers(0, 6), min_size=1, max_size=60).map(
    lambda values: torch.unique(torch.tensor(values), return_inverse=True)[1])


@given(labelings, st.integers(1, 4))
def test_positives_share_the_anchors_cluster_and_negatives_do_not(labels: torch.Tensor, per_anchor: int) -> None:
    triplets = cluster_triplets(labels, per_anchor, 10_000, generator(0, 1))
    sizes = torch.bincount(labels)
    anchors = int((sizes[labels] > 1).sum()) if len(sizes) > 1 else 0
    assert len(triplets) == anchors * per_anchor
    anchor, positive, negative = triplets.unbind(1)
    assert (labels[anchor] == labels[positive]).all()
    assert (anchor != positive).all()
    assert (labels[anchor] != labels[negative]).all()
    assert torch.equal(torch.bincount(anchor, minlength=len(labels)) > 0, (sizes[labels] > 1) & (len(sizes) > 1))
    assert torch.equal(triplets, cluster_triplets(labels, per_anchor, 10_000, generator(0, 1)))


def test_positives_and_negatives_are_uniform_and_singletons_are_negatives() -> None:
    labels = torch.tensor([0, 0, 0, 0, 1, 2, 2])
    triplets = cluster_triplets(labels, 6000, 10**6, generator(3, 1))
    of_first = triplets[triplets[:, 0] == 0]
    for column, pool in ((1, [1, 2, 3]), (2, [4, 5, 6])):
        counts = torch.bincount(of_first[:, column], minlength=7)
        assert torch.nonzero(counts).squeeze(1).tolist() == pool
        assert (counts[pool] / 6000 - 1 / 3).abs().max() < 0.03


def test_the_number_of_triplets_is_limited() -> None:
    labels = torch.arange(100) // 10
    assert cluster_triplets(labels, 10, 64, generator(0, 1)).shape == (64, 3)


@given(labelings, st.integers(2, 20).map(lambda half: 2 * half))
def test_batches_are_pairs_of_a_cluster_with_each_anchor_at_most_once(
        labels: torch.Tensor, size: int) -> None:
    batches = list(pair_batches(labels, size, generator(1, 2)))
    sizes = torch.bincount(labels)
    available = int((sizes[labels] > 1).sum())
    anchors = torch.cat([batch[::2] for batch in batches]) if batches else torch.zeros(0, dtype=torch.int64)
    assert len(anchors) == len(anchors.unique())
    assert len(anchors) == (available // min(size // 2, available)) * min(size // 2, available) if available else True
    for batch in batches:
        assert (labels[batch[::2]] == labels[batch[1::2]]).all()
        assert (batch[::2] != batch[1::2]).all()


@pytest.mark.parametrize("margin", [0.05, 0.5, 4.0])
def test_negatives_are_semi_hard_if_any_exists(margin: float) -> None:
    random = torch.Generator().manual_seed(0)
    embeddings = torch.nn.functional.normalize(torch.randn(40, 3, generator=random))
    labels = torch.randint(0, 6, (20,), generator=random).repeat_interleave(2)
    triplets = semi_hard_triplets(torch.cdist(embeddings, embeddings), labels, margin, generator(0, 1))
    assert triplets[:, 0].tolist() == list(range(40))
    for anchor, positive, negative in triplets.tolist():
        assert positive == anchor + (1 if anchor % 2 == 0 else -1)
        to_positive = float((embeddings[anchor] - embeddings[positive]).norm())
        distances = (embeddings[anchor] - embeddings).norm(dim=1)
        semi_hard = [other for other in range(40) if labels[other] != labels[anchor]
                     and to_positive < float(distances[other]) < to_positive + margin]
        assert labels[negative] != labels[anchor]
        assert not semi_hard or negative in semi_hard


def test_a_single_cluster_has_no_triplets() -> None:
    labels = torch.zeros(6, dtype=torch.int64)
    assert cluster_triplets(labels, 3, 100, generator(0, 1)).shape == (0, 3)
    assert semi_hard_triplets(torch.rand(6, 6), labels, 0.5, generator(0, 1)).shape == (0, 3)


def draw(seed: int, epoch: int, kind: str) -> torch.Tensor:
    labels = torch.arange(60) // 6
    random = generator(seed, epoch)
    if kind == "triplets":
        return cluster_triplets(labels, 2, 10_000, random)
    if kind == "limited":
        return cluster_triplets(labels, 2, 50, random)
    if kind == "batches":
        return torch.cat(list(pair_batches(labels, 16, random)))[::2]  # the anchors, whose order is random
    embeddings = torch.randn(60, 3, generator=torch.Generator().manual_seed(0))
    return semi_hard_triplets(torch.cdist(embeddings, embeddings), labels, 4.0, random)


@pytest.mark.parametrize("kind", ["triplets", "limited", "batches", "semi-hard"])
def test_draws_depend_on_seed_and_epoch_only(kind: str) -> None:
    torch.manual_seed(5)
    state = torch.get_rng_state()
    first = draw(1, 2, kind)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(6)
    assert torch.equal(draw(1, 2, kind), first)
    for seed, epoch in ((1, 3), (2, 2), (2, 1)):
        assert not torch.equal(draw(seed, epoch, kind), first)


def test_the_limit_applies_only_if_exceeded_and_draws_anchors_uniformly() -> None:
    labels = torch.arange(10) // 5
    assert torch.bincount(cluster_triplets(labels, 6, 60, generator(0, 1))[:, 0]).tolist() == [6] * 10
    assert len(cluster_triplets(labels, 6, 59, generator(0, 1))) == 59
    counts = torch.bincount(cluster_triplets(labels, 10_000, 20_000, generator(0, 1))[:, 0], minlength=10)
    assert (counts / 20_000 - 0.1).abs().max() < 0.015


def test_negatives_are_uniform_among_the_semi_hard() -> None:
    """The first row has 3 semi-hard negatives, one too near and two too far."""
    embeddings = torch.tensor([[0.0], [1.0], [1.1], [1.2], [1.3], [0.5], [3.0], [3.0]])
    labels = torch.tensor([0, 0, 1, 1, 2, 2, 3, 3])
    distances = torch.cdist(embeddings, embeddings)
    negatives = torch.stack([semi_hard_triplets(distances, labels, 1.0, generator(0, epoch))[0, 2]
                             for epoch in range(1500)])
    counts = torch.bincount(negatives, minlength=8)
    assert torch.nonzero(counts).squeeze(1).tolist() == [2, 3, 4]
    assert (counts[2:5] / 1500 - 1 / 3).abs().max() < 0.06


@given(st.integers(2, 80), st.integers(1, 6), st.integers(2, 50))
def test_neighbor_batches_are_seeds_followed_by_their_neighbors(count: int, others: int, size: int) -> None:
    neighbors = torch.randint(count, (count, others), generator=generator(count, others))
    batches = list(neighbor_batches(neighbors, size, generator(0, 1)))
    assert len(batches) == max(1, count // size)
    seeds = []
    for batch in batches:
        groups = batch.view(-1, others + 1)
        assert torch.equal(groups[:, 1:], neighbors[groups[:, 0]])
        assert len(groups) <= max(1, size // (others + 1))
        seeds += groups[:, 0].tolist()
    assert len(seeds) == len(set(seeds))
    repeated = list(neighbor_batches(neighbors, size, generator(0, 1)))
    assert all(torch.equal(first, second) for first, second in zip(batches, repeated, strict=True))


def test_half_of_the_label_pairs_are_similar_and_no_point_is_paired_with_itself() -> None:
    labels = torch.tensor([3, 3, 3, 5, 5, 9, 3, 5])
    pairs, same = label_pairs(labels, 1000, generator(0, 0))
    assert len(pairs) == 2 * (6 + 3), "as many of each kind as there are distinct similar pairs"
    assert int(same.sum()) == 9
    assert (pairs[:, 0] != pairs[:, 1]).all()
    assert torch.equal(labels[pairs[:, 0]] == labels[pairs[:, 1]], same)
    assert torch.equal(pairs, label_pairs(labels, 1000, generator(0, 0))[0])
    assert not torch.equal(pairs, label_pairs(labels, 1000, generator(1, 0))[0])
    assert len(label_pairs(labels, 7, generator(0, 0))[0]) == 6
    many, many_same = label_pairs(torch.arange(2000) % 10, 500_000, generator(0, 0))
    assert len(many) == 398_000
    assert len(torch.bincount(many[many_same].flatten(), minlength=2000).nonzero()) == 2000


def test_drawn_edges_estimate_the_weighted_mean_over_all_edges() -> None:
    """The mean over 20,000 draws of five points approximates the expected value."""
    random, times = generator(0, 0), 20_000
    weights = torch.tensor([[1.0, 3.0, 0.0], [0.1, 0.2, 0.3], [0.0, 0.0, 0.0], [5.0, 5.0, 5.0], [0.0, 0.0, 2.0]])
    quantity = torch.tensor([[2.0, 1.0, 9.0], [4.0, 5.0, 6.0], [7.0, 7.0, 7.0], [1.0, 2.0, 6.0], [8.0, 8.0, 3.0]])
    edges = torch.arange(15).view(5, 3)
    drawn, importance = weighted_edges(edges.repeat(times, 1), weights.repeat(times, 1), random)
    assert torch.equal(drawn.div(3, rounding_mode="floor"), torch.arange(5).repeat(times)), "each point's own edges"
    expected = (weights * quantity).sum() / weights.sum()
    assert float((importance * quantity.flatten()[drawn]).mean()) == pytest.approx(float(expected), rel=0.01)
    torch.testing.assert_close(importance[:5], 5 * weights.sum(1) / weights.sum(), rtol=1e-4, atol=0)
    assert torch.equal(weighted_edges(edges, torch.ones(5, 3), random)[1], torch.ones(5))
    assert torch.equal(weighted_edges(edges, torch.zeros(5, 3), random)[1], torch.zeros(5))


@pytest.mark.parametrize("labels", [[0, 1, 2], [4, 4, 4], [7]])
def test_labels_with_only_similar_or_only_dissimilar_pairs_give_no_pairs(labels: list[int]) -> None:
    pairs, same = label_pairs(torch.tensor(labels), 100, generator(0, 0))
    assert pairs.shape == (0, 2)
    assert same.shape == (0,)


def test_a_balanced_draw_is_half_similar_for_any_shares() -> None:
    same = torch.tensor([True] * 3 + [False] * 97)
    drawn = balanced_draw(same, 1001, generator(0, 1))
    assert len(drawn) == 1001
    assert int(same[drawn].sum()) == 500
    assert 150 < int(same[drawn[:500]].sum()) < 350, "in random order"
    assert set(drawn.tolist()) >= {0, 1, 2}
