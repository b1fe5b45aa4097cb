"""The images that questions show: images without a finding of quality in the audit."""

from __future__ import annotations

import numpy as np

from udml_core.base.arrays import Booleans
from udml_core.base.errors import counted
from udml_core.base.memory import Memory
from udml_core.data.dataset import Dataset
from udml_core.data.given import exclusions
from udml_core.data.given.exclusions import excluded_images
from udml_core.data.given.log import log_version
from udml_core.data.image_facts import facts_version, stored_facts
from udml_core.exploration.quality import all_poor, poor_by_check

_MEMORY = Memory(4)
"""Masks by what they depend on."""


def asked_images(dataset: Dataset) -> Booleans:
    """Return the mask (n,) of the images without a finding of quality; all images if every one has a finding.

    A plain or blurred photograph has no better result. Without an audit, all images are asked.
    """
    key = dataset.fingerprint, facts_version(dataset), log_version(dataset, exclusions.KIND)
    return _MEMORY.get(key, lambda: _asked_images(dataset))


def _asked_images(dataset: Dataset) -> Booleans:
    facts, asked = stored_facts(dataset), np.ones(len(dataset), bool)
    if facts is None:
        return asked
    kept = ~np.isin(np.arange(len(dataset)), excluded_images(dataset))
    asked[all_poor(poor_by_check(facts, kept))] = False
    return asked if (asked & kept).any() else np.ones(len(dataset), bool)


def left_out_words(count: int) -> str:
    """Say how many images no question shows; empty for none."""
    return (f"{counted(count, 'image')} that the audit lists under Quality (blurry or plain, for example) "
            f"{'is' if count == 1 else 'are'} left out of the questions.") if count else ""
