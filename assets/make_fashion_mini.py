"""Makes assets/fashion-mini.npz from the official Fashion-MNIST files: `python -m assets.make_fashion_mini`.

The first 500 training and the first 100 test images of each class, in the files' order, so that anybody who has the
files (Debian: dataset-fashion-mnist) makes the same bytes again. Fashion-MNIST is Zalando SE's, MIT licence.
"""

import numpy as np

from udml_core.data.sources.idx import FashionMNIST
from udml_core.paths import ASSETS

TRAIN, TEST = 500, 100

whole = FashionMNIST().load(lambda _share, _what: None)
assert whole.labels is not None
assert whole.official_test is not None
chosen = [np.flatnonzero((whole.labels == label) & (whole.official_test == is_test))[:count]
          for is_test, count in ((False, TRAIN), (True, TEST)) for label in range(10)]
positions = np.sort(np.concatenate(chosen))
np.savez_compressed(ASSETS / "fashion-mini.npz", pixels=whole.images.pixels[positions],  # type: ignore[attr-defined]
                    labels=whole.labels[positions].astype(np.uint8), is_test=whole.official_test[positions])
