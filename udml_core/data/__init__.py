"""Data sets, splits, images and cached features."""

from udml_core.data.dataset import Dataset
from udml_core.data.training import TrainingData

__all__ = ["Dataset", "TrainingData"]
