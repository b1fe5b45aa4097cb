"""An epoch that trains the encoder costs at most 1.25 times the bare passes that its algorithm needs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from experiments.encoder_costs import FIELDS, IMAGES, costs

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(1800)]

LIMIT = 1.25
NEEDED: dict[str, Callable[[float, float], bool]] = {
    # Student and teacher read two views of every image, and the neighbors need every image once.
    "plm": lambda trained, read: (trained, read) == (2 * IMAGES, 3 * IMAGES),
    "srpml": lambda trained, read: trained <= 2 * IMAGES and read == 0,
    # A triplet has three images, and the graph of a partition is kept for ten epochs.
    "ssdml": lambda trained, read: trained <= 3 * IMAGES and read == 0,
    # The uncertainties that an epoch stores need every image once.
    "pslr": lambda trained, read: (trained, read) == (2 * IMAGES, IMAGES),
    "isif": lambda trained, read: (trained, read) == (2 * IMAGES, 0),
    "nce": lambda trained, read: (trained, read) == (IMAGES, 0),
    # A batch of triplets of 40 labeled images reads each of them at most once.
    "triplet": lambda trained, read: trained <= IMAGES // 5 * FIELDS["triplet"]["per_anchor"] // 2 and read == 0}


@pytest.mark.parametrize("name", FIELDS)
def test_an_epoch_costs_little_more_than_the_passes_it_needs(name: str) -> None:
    cost = costs(name)
    print(name, cost)
    assert NEEDED[name](cost["images trained"], cost["images read"])
    assert cost["ratio"] <= LIMIT
