"""Reads the records of experiments that the app shows."""
