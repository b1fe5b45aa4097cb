"""Losses as pure functions of tensors, one file per family."""
