"""Data sets, splits, images and cached features."""
