"""Oxford Flowers-102."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from udml_core.data.sources.listed import Listing
from udml_core.data.sources.official.layout import ListedLayout


class Flowers(ListedLayout):
    """Oxford Flowers-102 (M.-E. Nilsback, A. Zisserman, ICVGIP 2008).

    The test half is the authors' 6,149 test images; training and validation images are the training half. The files do
    not name the classes.
    """

    official_name = "Oxford Flowers-102"
    published = (8_189, 102)
    expected = "jpg/image_00001.jpg to image_08189.jpg, imagelabels.mat (labels) and setid.mat (trnid, valid, tstid)"
    advice = "Download 102flowers.tgz, imagelabels.mat and setid.mat from " \
             "https://www.robots.ox.ac.uk/~vgg/data/flowers/102/."
    needed = ("jpg", "imagelabels.mat", "setid.mat")

    @classmethod
    def matches(cls, path: Path) -> bool:
        return any((path / name).is_file() for name in cls.needed[1:])

    def read(self) -> Listing:
        labels = np.atleast_1d(self.read_matlab("imagelabels.mat", "labels")).astype(np.int64)
        halves = [np.atleast_1d(self.read_matlab("setid.mat", name)).astype(np.int64)
                  for name in ("trnid", "valid", "tstid")]
        numbers = np.arange(1, len(labels) + 1)
        if not np.array_equal(np.sort(np.concatenate(halves)), numbers):
            raise self.damaged(f"setid.mat must name each of the {len(labels):,} images of imagelabels.mat once")
        if labels.min() < 1:
            raise self.damaged(f"the labels in imagelabels.mat must be at least 1, got {labels.min()}")
        used, classes = np.unique(labels, return_inverse=True)
        return Listing([f"jpg/image_{number:05}.jpg" for number in numbers], classes.tolist(),
                       [f"flower {label:03}" for label in used], np.isin(numbers, halves[2]).tolist())
