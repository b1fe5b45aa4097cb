"""Metric learning with few labels or none: five papers' methods and their baselines under one protocol.

A method is its hyper-parameters plus `fit`; a run is a folder; an explanation is a few arrays.
"""

__version__ = "0.1.0"
