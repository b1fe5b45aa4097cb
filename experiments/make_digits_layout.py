"""Make assets/lessons/digits.npy, the t-SNE map of the digits for lessons.

Run `python -m experiments.make_digits_layout`.
"""

import numpy as np

from udml_core.base.paths import ASSETS
from udml_core.exploration.lesson_examples import digits_vectors
from udml_core.numerics.projection.tsne import tsne_layout

layout = tsne_layout(digits_vectors(), perplexity=30.0, seed=0)
np.save(ASSETS / "lessons" / "digits.npy", layout.astype(np.float32))
