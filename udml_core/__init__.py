"""Metric learning with few labels or none: five papers' methods and their baselines under one protocol.

A method is its hyper-parameters plus `fit`; a run is a folder; an explanation is a few arrays.
"""

import os

# torch, faiss and scikit-learn each bring an OpenMP whose idle threads spin. Where the app, a worker and anything
# else share few cores that costs far more than it saves: beside another process on two cores a small run took 11.8 s,
# and 0.4 s like this. It is read when the first of them is loaded, so it is set before.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

__version__ = "0.2.0"
