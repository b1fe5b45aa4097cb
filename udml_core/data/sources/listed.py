"""Data sets whose images and labels are named by lists, not by the tree of folders."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from PIL import Image

from udml_core.base.arrays import Array, Booleans
from udml_core.base.errors import UserError, quoted
from udml_core.base.paths import is_exposed, may_read
from udml_core.data.dataset import Dataset, FileImages, Images, Report, Skipped
from udml_core.data.dataset_columns import Columns
from udml_core.data.sources.located import Located, printable
from udml_core.data.sources.scanning import Scan, scan


@dataclass(frozen=True)
class Listing:
    """The images of a data set as its lists name them.

    Attributes:
        files: Path of each image (n) relative to the folder, with forward slashes.
        labels: Class of each image (n), 0 … c−1; None if unlabeled.
        class_names: Names of the classes.
        in_test: Whether each image (n) is in the official test half; None without an official division.
        training_classes: Number of first classes that the official zero-shot training half has; None for half of them.
        boxes: Left, top, right and bottom of the part of each image (n) that is used; None for whole images.
        evaluation_classes: Classes of each image (n, c) bool if some have several or none; without `labels`.
        queries: Whether each image (n) is a query of the authors' protocol; None if every test image is.
        columns: Other values of each image (n) by name.
        left_out: Images that the lists name, but that cannot be used, with the reason.
        root: The folder of the files; None for that of the data set.
    """

    files: Sequence[str]
    labels: Sequence[int] | None = None
    class_names: Sequence[str] = ()
    in_test: Sequence[bool] | None = None
    training_classes: int | None = None
    boxes: Array | None = None
    evaluation_classes: Booleans | None = None
    queries: Sequence[bool] | None = None
    columns: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    left_out: Sequence[Skipped] = ()
    root: Path | None = None


SEVERAL_CLASSES = ("An image can have several classes, so methods train without labels, and the evaluation counts an "
                   "image as a hit for each class that it shares with the query.")


@dataclass(frozen=True)
class CroppedImages(FileImages):
    """Images in files, each cropped to a box.

    Attributes:
        boxes: Left, top, right and bottom in pixels (n, 4).
    """

    boxes: tuple[tuple[int, ...], ...]

    def __getitem__(self, index: int) -> Image.Image:
        image = super().__getitem__(index)
        left, top, right, bottom = self.boxes[index]
        left, top = min(left, image.width - 1), min(top, image.height - 1)
        return image.crop((left, top, min(right, image.width), min(bottom, image.height)))


def check_files(source: Located, files: Sequence[str], root: Path) -> None:
    """Check that the lists name each image once and that every image is below the folder `root`.

    Raises:
        UserError: A path leads out of the folder or is listed twice, or an image does not exist.
    """
    if len(files) != len(set(files)):
        twice = next(file for file, count in Counter(files).items() if count > 1)
        raise UserError(f"The lists in {source.path} name the image {quoted(twice)} twice. Remove one of the lines.")
    for file in files:
        parts = PurePosixPath(file).parts
        if not parts or ".." in parts or "\\" in file or Path(file).is_absolute() or Path(file).drive:
            raise UserError(f"The lists in {source.path} must name images below this folder, got {quoted(file)}. "
                            "Remove this line.")
    absent = [file for file in files if not is_readable(root / file)]
    if absent:
        raise UserError(f"{len(absent):,} of the {len(files):,} images that the lists in {source.path} name do not "
                        f"exist, such as {quoted(absent[0])}. Expected: {source.expected}. Copy the missing images, "
                        "or remove their lines.")


def is_readable(path: Path) -> bool:
    """Return whether a file exists and may be read."""
    return os.path.isfile(path) and (not is_exposed() or may_read(path))


def load_listing(source: Located, listing: Listing, report: Report, step: str) -> Dataset:
    """Load the images of a listing; images that cannot be decoded are skipped.

    Args:
        source: The data set.
        listing: Its images.
        report: Receives the finished share.
        step: Name of the step for the report.

    Raises:
        UserError: An image is missing, or fewer than two can be read.
    """
    root = listing.root or source.path
    check_files(source, listing.files, root)
    return assemble(source, listing, scan(root, listing.files, report, step), lambda files: FileImages(root, files))


def assemble(source: Located, listing: Listing, entries: Scan, images_of: Callable[[tuple[str, ...]], Images]
             ) -> Dataset:
    """Return the data set of a listing whose images were decoded once.

    Args:
        source: The data set.
        listing: Its images.
        entries: Description of each image by the name that the listing gives it.
        images_of: Returns the images of some of these names.

    Raises:
        UserError: Fewer than two images can be read.
    """
    skipped = [Skipped(printable(file), entries[file]["reason"]) for file in listing.files if entries[file]["reason"]]
    kept = np.array([number for number, file in enumerate(listing.files) if not entries[file]["reason"]], np.int64)
    files = tuple(listing.files[number] for number in kept)
    if len(files) < 2:
        raise source.too_few(len(files), [*skipped, *listing.left_out])
    labels = None if listing.labels is None else np.asarray(listing.labels, np.int64)[kept]
    in_test = None if listing.in_test is None else np.asarray(listing.in_test, bool)[kept]
    classes = None if listing.evaluation_classes is None else listing.evaluation_classes[kept]
    queries = None if listing.queries is None else np.asarray(listing.queries, bool)[kept]
    sizes = np.array([entries[file]["size"] for file in files])
    images = images_of(files)
    if listing.boxes is not None:
        boxes = np.asarray(listing.boxes)[kept]
        outside = next((file for file, box, size in zip(files, boxes, sizes, strict=True)
                        if box[0] >= max(size) or box[1] >= max(size)), None)
        if outside is not None:
            raise UserError(f"The lists in {source.path} have a bounding box outside of the image {quoted(outside)}. "
                            "Correct the box, or open the data set without '#crop=box'.")
        images = CroppedImages(source.path, files, tuple(map(tuple, boxes.tolist())))
        sizes = boxes[:, 2:] - boxes[:, :2]
    digests = [entries[file]["digest"] for file in files]
    parts = [files, digests, labels, in_test, None if listing.boxes is None else boxes.tolist(),
             None if classes is None else classes.tolist(), queries]
    rows = zip(*(part for part in parts if part is not None), strict=True)
    content = "\n".join("|".join(map(str, row)) for row in rows) + f"\n{listing.training_classes}"
    return Dataset(source.name, source.title, images, labels, tuple(listing.class_names),
                   hashlib.sha256(content.encode()).hexdigest(), int(np.median(sizes.min(axis=1))),
                   all(entries[file]["gray"] for file in files), files, official_test=in_test,
                   divides_own_images=not source.is_benchmark and (
                       in_test is not None or listing.training_classes is not None),
                   skipped=(*skipped, *listing.left_out), distinct=len(set(digests)),
                   training_classes=listing.training_classes, evaluation_classes=classes, queries=queries,
                   columns=Columns(tuple(listing.columns), lambda name: [listing.columns[name][row] for row in kept],
                                   len(files)))
