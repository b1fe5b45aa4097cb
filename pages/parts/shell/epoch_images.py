"""The images whose embedding a run keeps for every epoch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import streamlit as st

from udml_core.base.arrays import Array, rows_of
from udml_core.data.splits import fixed_sample
from udml_core.runs import Run

from .cached import load_split
from .run_hash import RUN_HASH


@dataclass(frozen=True)
class EpochImages:
    """The fixed sample of the test half and, where every epoch has one, the sample of the training half.

    Attributes:
        run: The run.
        train: Data set indices (t,) of its training half.
    """

    run: Run
    train: Array

    @cached_property
    def _trained(self) -> Array:
        stored = [self.run.epoch_trained(epoch) for epoch in self.run.epoch_numbers()]
        if any(points is None for points in stored):
            return np.zeros(0, dtype=np.int64)
        images = fixed_sample(self.train, max((len(points) for points in stored if points is not None), default=0))
        complete = all(points is not None and len(points) == len(images) for points in stored)
        return images if complete else images[:0]

    @cached_property
    def indices(self) -> Array:
        """Data set indices (n,) int64, ascending."""
        return np.union1d(self.run.sample_indices(), self._trained)

    def embedding(self, epoch: int) -> Array:
        """Return the embedding (n, l) of the images after an epoch; 0 is before training.

        Raises:
            UserError: The epoch's file is missing or damaged.
        """
        sample = self.run.epoch_sample(epoch)
        points = np.empty((len(self.indices), sample.shape[1]), dtype=sample.dtype)
        if len(self._trained):
            points[rows_of(self.indices, self._trained)] = self.run.epoch_trained(epoch)
        points[rows_of(self.indices, self.run.sample_indices())] = sample
        return points


@st.cache_resource(max_entries=16, show_spinner=False, hash_funcs=RUN_HASH)
def epoch_images(run: Run) -> EpochImages:
    """Return the images whose embedding a finished run keeps for every epoch."""
    return EpochImages(run, load_split(run).train)
