"""A data set: images, optionally with class labels."""

from __future__ import annotations

import importlib.util
import io
import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol
from urllib.parse import quote

import numpy as np
from PIL import Image, UnidentifiedImageError

from udml_core.base import bounded
from udml_core.base.arrays import LARGE, Array, Booleans, Integers
from udml_core.base.errors import UserError, counted
from udml_core.data.dataset_columns import Columns, class_columns
from udml_core.data.large_images import check_memory, shrink, turn
from udml_core.data.tiff_layout import check_tiff

FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "AVIF")
"""Formats that are read, independent of the file extension. Pillow supports more, but runs PostScript as code."""
PLAIN = (b"\xff\xd8", b"\x89PNG", b"RIFF", b"BM", b"GIF8")
"""The first bytes of the formats whose decoders need what the size of an image says; in others, parts can be larger."""
NEEDS_HEIC = "HEIC images need the package pi-heif"
"""Begin of the reason why a HEIC image, which is not damaged, is not read."""
HEIC_BRANDS = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1")
STRIP = 256
"""Rows of an image that are converted at once, where a conversion needs several times the memory of its result."""
ORIENTATION = 0x0112
TURNS = {2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180, 4: Image.Transpose.FLIP_TOP_BOTTOM,
         5: Image.Transpose.TRANSPOSE, 6: Image.Transpose.ROTATE_270, 7: Image.Transpose.TRANSVERSE,
         8: Image.Transpose.ROTATE_90}
"""Operation that turns an image upright, by EXIF orientation."""
TURNED = (5, 6, 7, 8)
"""EXIF orientations that exchange width and height."""
KINDS = {"unreadable": "cannot be read", "unused": "not used"}
"""Words for files that are skipped, by their kind."""
MOST_MISSING = 3
"""Missing files that are named where they are counted."""
TABLE = "table"
"""Name of the backbone whose features are the vectors of a table."""
Report = Callable[[float, str], None]
"""Progress callback: the finished share, 0 to 1, and the name of the current step, with a detail after `DETAIL`."""
DETAIL = " · "
"""Separates the name of a step from a detail that changes during the step, such as its speed."""
WAITING = "waiting for the device"
"""The step of a run while another run holds its device."""


def step_name(step: str) -> str:
    """Return the name of a step without its detail."""
    return step.partition(DETAIL)[0]


class Images(Protocol):
    """RGB images by index."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Image.Image: ...


@dataclass(frozen=True)
class ArrayImages:
    """Images in one array.

    Attributes:
        pixels: Gray images (n, height, width) or RGB images (n, height, width, 3), uint8.
    """

    pixels: Array

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, index: int) -> Image.Image:
        return Image.fromarray(self.pixels[index]).convert("RGB")


@dataclass(frozen=True)
class JoinedImages:
    """The images of several arrays, one after the other, without a copy.

    Attributes:
        parts: The arrays.
    """

    parts: tuple[ArrayImages, ...]

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def __getitem__(self, index: int) -> Image.Image:
        for part in self.parts:
            if index < len(part):
                return part[index]
            index -= len(part)
        raise IndexError(index)


class EncodedImages(ABC):
    """Images that are decoded when they are needed, as small as their readers allow."""

    @abstractmethod
    def source(self, index: int) -> Any:
        """Return the path of an image, or an open binary file with its content.

        Raises:
            OSError: The image is gone.
        """

    @abstractmethod
    def place(self, index: int) -> str:
        """Return where an image is, for messages."""

    def __getitem__(self, index: int) -> Image.Image:
        return self.reduced(index)

    def reduced(self, index: int, side: int | None = None) -> Image.Image:
        """Return an image, of which at least `side` pixels of the shorter side are needed."""
        try:
            return _read_stored(self.place(index), self.source(index), side)
        except Exception as error:  # a damaged image can raise any exception
            raise UserError(f"The image {self.place(index)} could be read when the data set was opened, but cannot be "
                            f"read now: {error}. Restore it, or open the data set again without it.") from error


@dataclass(frozen=True)
class FileImages(EncodedImages):
    """Images in files below a folder.

    Attributes:
        root: The folder.
        files: Path of each image relative to the folder.
    """

    root: Path
    files: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.files)

    def source(self, index: int) -> Path:
        return self.root / self.files[index]

    def place(self, index: int) -> str:
        return str(self.source(index))


MOST_UPLOADED, LARGEST_HEADER = 200_000_000, 20_000_000
"""Bytes of a user's image file that are read at most, and up to which the server itself reads its header."""
UNREAD = (20_000, 20_000)
"""The size that stands for a large file whose header was not read."""


@dataclass(frozen=True)
class UserImage:
    """An image that a user provides, decoded by bounded calls as small as each of its readers allows.

    Attributes:
        source: The path of its file, or the content of its file.
        name: Its name in messages.
    """

    source: Path | bytes = field(repr=False)
    name: str

    def reduced(self, side: int | None = None) -> Image.Image:
        """Return the image, of which at least `side` pixels of the shorter side are needed.

        Raises:
            UserError: The content is not an image, is damaged, or is too large.
        """
        if not bounded.is_on():
            return self._read(side)
        if self._bytes() > MOST_UPLOADED:
            raise UserError(f"The image file {self.name} has {self._bytes() / 1e6:,.0f} MB; at most "
                            f"{MOST_UPLOADED / 1e6:,.0f} MB are read. Save it smaller, such as JPEG.")
        with turn(self._size(side)):  # the processes of the calls do not know of each other
            return bounded.call(self.name, self._read, side)

    def _read(self, side: int | None) -> Image.Image:
        return read_user_image(self._file(), self.name, side)

    def _size(self, side: int | None) -> tuple[int, int]:
        """Return the size at which the image is decoded; none if it cannot be read, which the reader says.

        A header can be as large as its file, so that of a large file is not read here; it counts as a large image.
        """
        if self._bytes() > LARGEST_HEADER:
            return UNREAD
        with suppress(Exception), _drafted(self._file(), side) as image:
            return image.size
        return 0, 0

    def _bytes(self) -> int:
        with suppress(OSError):
            return len(self.source) if isinstance(self.source, bytes) else self.source.stat().st_size
        return 0

    def _file(self) -> Any:
        return io.BytesIO(self.source) if isinstance(self.source, bytes) else self.source


def read_user_image(source: Any, name: str, side: int | None = None) -> Image.Image:
    """Read an image that a user provides.

    Args:
        source: A path or an open binary file.
        name: The name of the image in error messages.
        side: Pixels of the shorter side that are needed; see `read_image`.

    Raises:
        UserError: The content is not an image, is damaged, or is too large.
    """
    if isinstance(source, str | Path) and not Path(source).is_file():
        raise UserError(f"{name} must be an image file, but is a folder, a named pipe or a device."
                        if Path(source).exists() else f"The image {name} does not exist. Check its path.")
    try:
        return read_image(source, side)
    except UnidentifiedImageError as error:
        raise UserError(f"{name} must be an image in one of the formats {', '.join(FORMATS)}, HEIC. "
                        "Save it as JPEG or PNG.") from error
    except Exception as error:  # a damaged image can raise any exception
        raise UserError(f"{name} must be an image, but could not be read: {error}. "
                        "Save it again as JPEG or PNG.") from error


def reduced(images: Images, index: int, side: int) -> Image.Image:
    """Return an image for a network that reads squares of a side in pixels; see `read_image`."""
    return images.reduced(index, side) if isinstance(images, EncodedImages) else images[index]


def read_image(source: Any, side: int | None = None) -> Image.Image:
    """Read an image as viewers display it.

    The image is turned by its EXIF orientation, put on white where it is transparent, and converted to RGB.

    Args:
        source: A path or an open binary file.
        side: Pixels of the shorter side that are needed; by default all. A JPEG file is then decoded at the smallest of
            the scales 1, 1/2, 1/4 and 1/8 that leaves twice as many, which takes a third of the time for a photograph
            of 12 megapixels. Other large images are made smaller after decoding.
    """
    with _drafted(source, side) as image, turn(image.size):
        return shrink(_upright_rgb(image), side)


def _read_stored(place: str, source: Any, side: int | None) -> Image.Image:
    """Read an image of a data set; in a server by a bounded call if its decoder can need more than its size says."""
    if bounded.is_on() and not _first_bytes(source).startswith(PLAIN):
        with turn(UNREAD):
            return bounded.call(place, read_image, source, side)
    return read_image(source, side)


@contextmanager
def _drafted(source: Any, side: int | None) -> Iterator[Image.Image]:
    """Open an image, choose the scale at which it is decoded, and check what that needs."""
    with open_image(source) as image:
        if side is not None:
            image.draft(None, (2 * side, 2 * side))
        check_memory(image)
        yield image


def _upright_rgb(image: Image.Image) -> Image.Image:
    transposition = TURNS.get(_orientation(image))
    turned = image if transposition is None else image.transpose(transposition)
    if turned.mode[0] in "IF":
        return _eight_bits(turned).convert("RGB")
    if turned.mode in ("RGBA", "LA", "PA") or "transparency" in turned.info:
        return _on_white(turned)
    return turned.convert("RGB")


def _on_white(image: Image.Image) -> Image.Image:
    """Put an image on white, in strips, because its layers would need several times its memory."""
    whole = Image.new("RGB", image.size)
    for top in range(0, image.height, STRIP):
        strip = image.crop((0, top, image.width, min(image.height, top + STRIP))).convert("RGBA")
        whole.paste(Image.alpha_composite(Image.new("RGBA", strip.size, "white"), strip).convert("RGB"), (0, top))
    return whole


def open_image(source: Any) -> Image.Image:
    """Open an image of a known format without decoding it.

    Raises:
        UnidentifiedImageError: It has another format.
        ValueError: It is a HEIC image, and the package that reads such images is not installed; or it is a TIFF file
            that declares too large or too many parts.
    """
    with _rewound(source) as file:
        check_tiff(file)
    try:
        return Image.open(source, formats=FORMATS)
    except UnidentifiedImageError:
        if not _is_heic(_first_bytes(source)):
            raise
    try:
        import pi_heif
    except ImportError as error:
        raise ValueError(f"{NEEDS_HEIC}: pip install pi-heif") from error
    pi_heif.register_heif_opener()
    return Image.open(source, formats=("HEIF",))


def reads_heic() -> bool:
    """Return whether the package that reads HEIC images is installed."""
    return importlib.util.find_spec("pi_heif") is not None


@contextmanager
def _rewound(source: Any) -> Iterator[BinaryIO]:
    """Open the file at a path, or rewind an open file, before and after the body."""
    if isinstance(source, str | Path):
        with Path(source).open("rb") as file:
            yield file
        return
    source.seek(0)
    yield source
    source.seek(0)


def _first_bytes(source: Any) -> bytes:
    with _rewound(source) as file:
        return file.read(12)


def _is_heic(first: bytes) -> bool:
    """Return whether the first bytes of a file are as in the HEIC images of phones."""
    return first[4:8] == b"ftyp" and first[8:12] in HEIC_BRANDS


def upright_size(source: Any) -> tuple[int, int]:
    """Return the width and height of an image file as viewers display it, without decoding it."""
    with open_image(source) as image:
        return image.size[::-1] if _orientation(image) in TURNED else image.size


def _orientation(image: Image.Image) -> Any:
    """Return the EXIF orientation, or 1 (upright) if the EXIF block is damaged.

    Damaged blocks are common. Pillow's `exif_transpose` also rewrites the block and fails on many that can be read.
    """
    try:
        return image.getexif().get(ORIENTATION, 1)
    except Exception:  # a damaged block can raise any exception
        return 1


def _eight_bits(image: Image.Image) -> Image.Image:
    """Scale a gray image of 16 or 32 bits to 8 bits.

    Pillow's own conversion makes every value above 255 white. White is 65,535 for 16-bit integers. For other types it
    is the smallest of 1, 255 and 65,535 that no pixel exceeds, or else the brightest pixel.
    """
    stored = np.asarray(image)

    def strips() -> Iterator[Array]:
        for top in range(0, len(stored), STRIP):
            yield np.nan_to_num(stored[top : top + STRIP].astype(np.float64))

    levels = (65_535.0,) if image.mode.startswith("I;16") else (1.0, 255.0, 65_535.0)
    most = max(strip.max() for strip in strips())
    white = next((level for level in levels if most <= level), most)
    scaled = [np.round(strip.clip(0) * (255 / white)).astype(np.uint8) for strip in strips()]
    return Image.fromarray(np.concatenate(scaled))


@dataclass(frozen=True)
class Skipped:
    """A file that is not part of the data set.

    Attributes:
        file: Path of the file relative to the folder.
        reason: Why it was skipped.
        kind: Whether it cannot be read, is missing, or is not used.
    """

    file: str
    reason: str
    kind: Literal["unreadable", "missing", "unused"] = "unreadable"


def skipped_words(images: int, skipped: Sequence[Skipped]) -> str:
    """Say how many files are no images of a data set, such as `5 files cannot be read`; empty if there are none.

    Args:
        images: Number of its images.
        skipped: The files.
    """
    total, missing = images + len(skipped), [file.file for file in skipped if file.kind == "missing"]
    named = ", ".join(missing[:MOST_MISSING]) + (", …" if len(missing) > MOST_MISSING else "")
    counts = {kind: sum(file.kind == kind for file in skipped) for kind in KINDS}
    words = [f"{counted(count, 'file')} {KINDS[kind]}" for kind, count in counts.items() if count]
    return "; ".join(words + ([f"{len(missing):,} of {total:,} files {'is' if len(missing) == 1 else 'are'} missing: "
                               f"{named}"] if missing else []))


@dataclass(frozen=True)
class Dataset:
    """Images with optional class labels.

    Attributes:
        name: Name of the data set in commands and stored runs.
        title: Name of the data set in the app.
        images: The images by index.
        labels: Class of each image (n,) int64, 0 … c−1 in the order of `class_names`; None if unlabeled.
        class_names: Names of the classes.
        fingerprint: Digest of the images and their names or labels; it changes when they change.
        native_size: Typical shorter side of an image, in pixels.
        gray: Whether all images are gray.
        names: A unique name for each image.
        official_test: Mask of the authors' test images (n,) bool; None without an official division.
        skipped: Files that were not read.
        distinct: Number of different images by content; None if it is not known.
        training_classes: Number of first classes in `class_names` that the authors' zero-shot training half has; None
            for the first half of the classes by sorted name.
        evaluation_classes: Classes of each image (n, c) bool if some images have several classes or none; `labels` is
            None then, so that methods train without labels, and only the evaluation uses these classes.
        queries: Mask of the authors' query images (n,) bool, which search among the other test images; None if every
            test image is a query.
        columns: Other columns of the user's table, to color and filter by.
        vectors: Features (n, d) float32 of a table of embeddings, memory-mapped; None if a backbone computes features
            from the images. The images of a table only illustrate its rows.
        digests: Digest of each image's file in a plain folder, which tells unchanged images when the folder changes;
            empty in other data sets.
        divides_own_images: Whether the user's own folders or tables give the halves, so that runs use them by default;
            benchmarks keep their protocol.
    """

    name: str
    title: str
    images: Images
    labels: Integers | None
    class_names: tuple[str, ...]
    fingerprint: str
    native_size: int
    gray: bool
    names: tuple[str, ...]
    official_test: Booleans | None = None
    skipped: tuple[Skipped, ...] = ()
    distinct: int | None = None
    training_classes: int | None = None
    evaluation_classes: Booleans | None = None
    queries: Booleans | None = None
    columns: Mapping[str, Array] = field(default_factory=Columns)
    vectors: Array | None = None
    digests: tuple[str, ...] = ()
    divides_own_images: bool = False

    def __len__(self) -> int:
        return len(self.images)

    @property
    def is_large(self) -> bool:
        """Whether there are too many images for exact maps, searches and evaluations, and for thumbnails of all."""
        return len(self) > LARGE

    @property
    def is_table(self) -> bool:
        """Whether the data set is a table of embeddings, whose features no backbone computes."""
        return self.vectors is not None

    @cached_property
    def class_sizes(self) -> Array:
        """Number of images in each class (c,)."""
        if self.evaluation_classes is not None:
            sizes: Array = self.evaluation_classes.sum(axis=0)
            return sizes
        return np.bincount(self.labels, minlength=len(self.class_names)) if self.labels is not None else np.zeros(0)

    @property
    def without_labels(self) -> str:
        """Why there are no labels, as a message continues after the title of the data set."""
        if self.evaluation_classes is None:
            return "has none"
        return "has classes for the evaluation only, because some of its images have several classes or none"

    @cached_property
    def class_columns(self) -> dict[str, int]:
        """Number of values of each column that could be the classes; none if the data set has classes."""
        has_choice = not self.class_names and not self.is_large and "#" not in Path(self.name).name
        return class_columns(self.columns) if has_choice else {}

    def with_classes_from(self, column: str) -> str:
        """Return the name of the data set whose classes are a column of its table."""
        return f"{self.name}#label={quote(column) if self.is_table else column}"

    @property
    def advice_on_classes(self) -> str:
        """How the images get classes, as a sentence without its end."""
        for column, count in self.class_columns.items():
            return (f"Use the {count:,} values of the column {column} as the classes with --dataset "
                    f"{shlex.quote(self.with_classes_from(column))}")
        return "Sort the images into one subfolder for each class"

    def members(self, label: int | None) -> Integers:
        """Return the indices of the images in a class.

        These are all images if `label` is None or there are no labels.
        """
        if label is None or self.labels is None:
            return np.arange(len(self))
        return np.flatnonzero(self.labels == label)

    def indices_by_name(self, names: Collection[str] | None = None) -> dict[str, int]:
        """Return the index of each image by its name, ascending.

        Args:
            names: Names to look for, in a set or mapping; unknown names are left out. By default all images, which
                takes seconds for a large data set.
        """
        if names is None:
            return {name: index for index, name in enumerate(self.names)}
        if not names:
            return {}
        if len(self) > LARGE:  # a dictionary of all names would take gigabytes
            return {name: index for index, name in enumerate(self.names) if name in names}
        found = {name: self._index_of[name] for name in names if name in self._index_of}
        return dict(sorted(found.items(), key=itemgetter(1)))

    @cached_property
    def _index_of(self) -> dict[str, int]:
        return self.indices_by_name()

    def caption(self, index: int) -> str:
        """Return the name of an image, preceded by its class or classes if they are known."""
        if self.evaluation_classes is not None and self.evaluation_classes[index].any():
            classes = np.flatnonzero(self.evaluation_classes[index])
            return f"{', '.join(self.class_names[number] for number in classes)} · {self.names[index]}"
        if self.labels is None:
            return self.names[index]
        return f"{self.class_names[self.labels[index]]} · {self.names[index]}"
