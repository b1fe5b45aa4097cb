"""Losses as pure functions on tensors, one file a family."""
