"""Make assets/fashion-mini.npz from the official Fashion-MNIST files.

Run `python -m experiments.make_fashion_mini`. The subset has the first 500 training and the first 100 test images of
each class, in the order of the files, so every copy of the files (Debian: dataset-fashion-mnist) gives the same images.
Fashion-MNIST is by Zalando SE, MIT license.
"""

import numpy as np

from udml_core.base.paths import ASSETS
from udml_core.data.sources.idx import FashionMNIST

TRAIN, TEST = 500, 100

whole = FashionMNIST().load(lambda _share, _step: None)
assert whole.labels is not None
assert whole.official_test is not None
chosen = [np.flatnonzero((whole.labels == label) & (whole.official_test == is_test))[:count]
          for is_test, count in ((False, TRAIN), (True, TEST)) for label in range(10)]
indices = np.sort(np.concatenate(chosen))
np.savez_compressed(ASSETS / "fashion-mini.npz", pixels=whole.images.pixels[indices],  # type: ignore[attr-defined]
                    labels=whole.labels[indices].astype(np.uint8), is_test=whole.official_test[indices])
