"""Curves over epochs and runs."""
