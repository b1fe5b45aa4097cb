"""What a gallery's folder holds, as its only entry point.

    manifest.json      this record, replaced atomically; a file that it does not name does not belong to the gallery
    centers.npy  rotation.npy  codebooks.npy     what training computed
    shards/00000/      ids.npy, and vectors.npy (kind flat), lists.bin with sizes.npy (ivf), or all (ivf-pq)
    removed-00001.npy  rows of removed vectors
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from udml_core.base.errors import UserError
from udml_core.base.files import READ_ERRORS, read_regular, replace_text

GalleryKind = Literal["flat", "ivf", "ivf-pq"]
NAME = "manifest.json"
LARGEST_MANIFEST = 4_000_000


class Shard(BaseModel):
    """A part of the vectors.

    Attributes:
        number: Number of its folder.
        rows: Number of vectors, removed ones included.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    number: int = Field(ge=0, lt=10**5)
    rows: int = Field(ge=1, le=2**31)

    @property
    def name(self) -> str:
        """Path below the gallery's folder."""
        return f"shards/{self.number:05}"


class Recall(BaseModel):
    """The measured recall@10.

    Attributes:
        recall: Share of the 10 true nearest neighbors that a search finds.
        queries: Number of queries, which are vectors of the gallery without themselves.
        rows: Number of searched vectors at that time.
        changes: Number of vectors that had been stored or removed by then.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    recall: float = Field(ge=0, le=1)
    queries: int = Field(ge=0)
    rows: int = Field(ge=0)
    changes: int = Field(ge=0)


class Manifest(BaseModel):
    """The record of a gallery.

    Attributes:
        format: Version of this layout.
        kind: `flat` compares every vector; `ivf` compares the vectors of some lists; `ivf-pq` compares codes of these
            vectors, and then the vectors of the best candidates.
        dimension: Width d of the vectors.
        half: Whether an `ivf-pq` stores the vectors as float16.
        lists: Number of lists; 0 for `flat`.
        codes: Bytes of a code; 0 without codes.
        planned: Number of vectors of the build.
        content: Digest of the built vectors and ids, by which a build that goes on recognizes them.
        shard_rows: Number of vectors of a shard of the build.
        shards: The finished shards, in the order of their rows.
        finished: Whether the build has finished.
        removed: Number of the file of removed rows; 0 if nothing was removed.
        removed_rows: Number of removed rows.
        probes: Lists that a search visits by default.
        candidates: Candidates per neighbor that an `ivf-pq` compares exactly.
        recall: Measured recall@10 at these values; None before the measurement.
        imbalance: Imbalance of the lists after the build; 1 is even.
        seconds: Seconds of the build, without interruptions.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    format: Literal[1] = 1
    kind: GalleryKind
    dimension: int = Field(ge=1, le=65_536)
    half: bool = False
    lists: int = Field(ge=0, le=2**20)
    codes: int = Field(default=0, ge=0, le=65_536)
    planned: int = Field(ge=1, le=2**31)
    content: str = Field(max_length=64)
    shard_rows: int = Field(ge=1)
    shards: tuple[Shard, ...] = Field(default=(), strict=False)
    finished: bool = False
    removed: int = Field(default=0, ge=0)
    removed_rows: int = Field(default=0, ge=0)
    probes: int = Field(default=1, ge=1, le=2**20)
    candidates: int = Field(default=1, ge=1, le=1000)
    recall: Recall | None = None
    imbalance: float = Field(default=1.0, ge=0)
    seconds: float = Field(default=0.0, ge=0)

    @property
    def rows(self) -> int:
        """Number of stored vectors, removed ones included."""
        return sum(shard.rows for shard in self.shards)

    @property
    def changes(self) -> int:
        """Number of vectors that were ever stored or removed."""
        return self.rows + self.removed_rows

    def __len__(self) -> int:
        return self.rows - self.removed_rows


def read_manifest(folder: Path) -> Manifest:
    """Read the record of a gallery.

    Raises:
        UserError: The folder holds none, or it is damaged.
    """
    path = folder / NAME
    if not path.exists():
        raise UserError(f"{folder} is not a gallery: it has no {NAME}. Build one with `udml index build`.")
    try:
        return Manifest.model_validate_json(read_regular(path, LARGEST_MANIFEST))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "content"
        raise UserError(f"{path} should describe a gallery; its {where} is invalid: {first['msg']}. Build the gallery "
                        "again.") from None
    except READ_ERRORS as error:
        raise UserError(f"{path} should describe a gallery, but could not be read: {error}. Build the gallery "
                        "again.") from error


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replace the record of a gallery atomically."""
    replace_text(folder / NAME, manifest.model_dump_json(indent=1) + "\n")
