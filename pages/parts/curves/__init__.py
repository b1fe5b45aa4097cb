"""Curves over epochs, widths and ranks for several runs."""
