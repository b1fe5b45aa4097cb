"""Metric learning with few labels or none, under one protocol.

The methods come from five papers and include their baselines. A method is its hyper-parameters plus `fit`; a run is a
folder; an explanation is a few arrays.
"""

import os

# torch, faiss and scikit-learn each bring their own OpenMP, whose idle threads spin. If several processes share few
# cores, spinning costs far more than it saves: beside another process on two cores, a small run took 11.8 s with it and
# 0.4 s without. OpenMP reads this setting when the first of these libraries is loaded, so it must be set before.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

__version__ = "0.4.0"
