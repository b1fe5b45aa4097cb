"""Fine-grained data sets with bounding boxes: CUB-200-2011 and Cars-196."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from udml_core.base.arrays import Array
from udml_core.base.errors import quoted
from udml_core.data.sources.listed import Listing
from udml_core.data.sources.official.layout import ListedLayout

CROP = {"crop": ("box",)}
"""The option `#crop=box`, which crops every image to its bounding box."""
CROPS = {("crop", "box"): "each image is cropped to its bounding box"}


class Cub(ListedLayout):
    """CUB-200-2011: birds (C. Wah et al., "The Caltech-UCSD Birds-200-2011 dataset", 2011).

    Other data sets, such as NABirds, use the same files. The papers train on the first half of the classes by number.
    """

    official_name = "CUB-200-2011"
    published = (11_788, 200)
    expected = ("images.txt (<image_id> <file below images/>), image_class_labels.txt (<image_id> <class_id>), "
                "train_test_split.txt (<image_id> <1 for training>), classes.txt (<class_id> <name>) and images/")
    advice = "Download CUB_200_2011.tgz from https://www.vision.caltech.edu/datasets/cub_200_2011/."
    needed = ("images.txt", "image_class_labels.txt", "train_test_split.txt", "classes.txt", "images")
    options = CROP

    def effects(self) -> dict[tuple[str, str], str]:
        return CROPS if (self.path / "bounding_boxes.txt").is_file() else {}

    @classmethod
    def matches(cls, path: Path) -> bool:
        lists = [(path / name).is_file() for name in cls.needed[:3]]
        return sum(lists) > 1

    def read(self) -> Listing:
        paths = self.read_by_id("images.txt", "<image_id> <file>")
        in_training = self.look_up(self.read_by_id("train_test_split.txt", "<image_id> <is_training_image>"), paths,
                                   "train_test_split.txt")
        ids = self.look_up(self.read_by_id("image_class_labels.txt", "<image_id> <class_id>"), paths,
                           "image_class_labels.txt")
        unknown = next((text for text in in_training if text not in ("0", "1")), None)
        if unknown is not None:
            raise self.damaged(f"train_test_split.txt must have 1 for training or 0, got {quoted(unknown)}")
        used = sorted(set(ids), key=lambda text: self.to_number(text, "image_class_labels.txt"))
        names = self.look_up(self.read_by_id("classes.txt", "<class_id> <name>"), used, "classes.txt")
        number_of = {text: number for number, text in enumerate(used)}
        return Listing([f"images/{file}" for file in paths.values()], [number_of[text] for text in ids], names,
                       [text == "0" for text in in_training], (len(used) + 1) // 2,
                       None if self.option is None else self._boxes(list(paths)))

    def _boxes(self, ids: list[str]) -> Array:
        rows = self.read_by_id("bounding_boxes.txt", "<image_id> <box>")
        try:
            boxes = np.array([text.split() for text in self.look_up(rows, ids, "bounding_boxes.txt")], dtype=float)
            left, top, width, height = boxes.T
        except ValueError as error:
            raise self.damaged("bounding_boxes.txt must have four numbers after each image's id") from error
        return checked_boxes(self, np.stack([left, top, left + width, top + height], axis=1))


class Cars(ListedLayout):
    """Cars-196 (J. Krause et al., "3D object representations for fine-grained categorization", 3dRR 2013).

    The papers train on the first 98 classes by number.
    """

    official_name = "Cars-196"
    published = (16_185, 196)
    expected = ("cars_annos.mat and car_ims/, or cars_train/, cars_test/, devkit/cars_meta.mat, "
                "devkit/cars_train_annos.mat and devkit/cars_test_annos_withlabels.mat")
    advice = ("The authors' page, https://ai.stanford.edu/~jkrause/cars/car_dataset.html, has moved at times: search "
              "for 'Stanford Cars'.")
    needed = ("cars_annos.mat|devkit/cars_meta.mat", "cars_annos.mat|devkit/cars_train_annos.mat",
              "cars_annos.mat|devkit/cars_test_annos_withlabels.mat|cars_test_annos_withlabels.mat",
              "car_ims|cars_train", "car_ims|cars_test")
    options = CROP

    def effects(self) -> dict[tuple[str, str], str]:
        return CROPS

    @classmethod
    def matches(cls, path: Path) -> bool:
        return any((path / name).exists() for name in (
            "cars_annos.mat", "car_ims", "devkit/cars_meta.mat", "devkit/cars_train_annos.mat"))

    def read(self) -> Listing:
        if (self.path / "cars_annos.mat").is_file():
            names = self._class_names("cars_annos.mat")
            rows = self._annotations("cars_annos.mat", "relative_im_path")
            files, in_test = list(rows["relative_im_path"]), [bool(value) for value in rows["test"]]
        else:
            names = self._class_names("devkit/cars_meta.mat")
            tests = "cars_test_annos_withlabels.mat"
            halves = [self._annotations("devkit/cars_train_annos.mat", "fname"), self._annotations(
                f"devkit/{tests}" if (self.path / "devkit" / tests).is_file() else tests, "fname")]
            files = [f"{folder}/{file}" for folder, half in zip(("cars_train", "cars_test"), halves, strict=True)
                     for file in half["fname"]]
            in_test = [is_test for is_test, half in zip((False, True), halves, strict=True) for _ in half["fname"]]
            rows = {key: np.concatenate([half[key] for half in halves]) for key in ("class", *BOX)}
        labels = np.array(rows["class"], dtype=np.int64) - 1
        if labels.min(initial=0) < 0 or labels.max(initial=0) >= len(names):
            raise self.damaged(f"its classes must be 1 to {len(names)}, got {labels.min() + 1} to {labels.max() + 1}")
        boxes = None
        if self.option is not None:
            corners = np.stack([np.asarray(rows[key], dtype=float) for key in BOX], axis=1)
            boxes = checked_boxes(self, corners - [1, 1, 0, 0])
        return Listing([str(file) for file in files], labels.tolist(), names, in_test, (len(names) + 1) // 2,
                       boxes)

    def _class_names(self, file: str) -> list[str]:
        return [str(name) for name in np.atleast_1d(self.read_matlab(file, "class_names"))]

    def _annotations(self, file: str, path_field: str) -> dict[str, Array]:
        """Read the fields of all images of a MATLAB file."""
        rows = np.atleast_1d(self.read_matlab(file, "annotations"))
        fields = (path_field, "class", *BOX, *(["test"] if path_field == "relative_im_path" else []))
        absent = [field for field in fields if field not in (rows.dtype.names or ())]
        if absent:
            raise self.damaged(f"the annotations in {file} have no field '{absent[0]}'")
        return {field: rows[field] for field in fields}


BOX = ("bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2")
"""Fields of a box in Cars-196; MATLAB counts pixels from 1, and the last pixel belongs to the box."""


def checked_boxes(source: ListedLayout, boxes: Array) -> Array:
    """Round boxes (n, 4) to whole pixels.

    Raises:
        UserError: A box is empty.
    """
    left_top, right_bottom = np.floor(boxes[:, :2]).clip(0), np.ceil(boxes[:, 2:])
    empty = np.flatnonzero(np.any(right_bottom <= left_top, axis=1))
    if len(empty):
        raise source.damaged(f"image {empty[0] + 1} of its lists has an empty bounding box")
    return np.concatenate([left_top, right_bottom], axis=1).astype(np.int64)
