"""The stored request of a run, with every option resolved."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, model_validator

from udml_core import __version__
from udml_core.base.arrays import Array
from udml_core.base.errors import UserError, counted
from udml_core.data.dataset import Dataset
from udml_core.data.encoders import EncoderSpec
from udml_core.data.given.exclusions import digest_of, indices_of
from udml_core.data.label_budget import default_per_class, drawn_labels, given_labels
from udml_core.data.splits import HOLDING_OUT, Select, Split, SplitName, make_split
from udml_core.methods import Method, find_method
from udml_core.runs.request import RunRequest

PairSource = Literal["labels", "given"]
FIRST_VERSION = "0.1.0"
"""The version that wrote specs without its own number and with only the changed hyper-parameters."""
FIRST_DEFAULTS = Path(__file__).with_name("defaults-0.1.0.json")
"""The default of every hyper-parameter in that version, so that its runs keep them."""
ADDED_FIELDS = Path(__file__).with_name("added-fields.json")
"""Values of later hyper-parameters that reproduce runs stored before these existed."""
FIELDS_FORMAT = 2
"""The meaning of the values in `fields`; see `_rename_values` for what changed since format 1."""
PACKAGES = ("torch", "numpy", "faiss-cpu", "scikit-learn", "scipy")


class ExclusionList(BaseModel):
    """The images that a run leaves out, as the exclusion list of its data set was when the run was planned."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    images: tuple[str, ...] = ()
    """Names of the images."""

    count: int = 0
    """Number of the images."""

    digest: str = Field(default_factory=lambda: digest_of(()))
    """Digest of the names; two runs with equal digests leave out the same images."""

    @classmethod
    def of(cls, names: Iterable[str]) -> ExclusionList:
        """Make the list of these names."""
        images = tuple(names)
        return cls(images=images, count=len(images), digest=digest_of(images))

    @property
    def words(self) -> str:
        """The number of images and the beginning of the digest, as the pages show them."""
        return f"{counted(self.count, 'image')}, list {self.digest[:8]}" if self.count else "no images"

    @model_validator(mode="after")
    def _check_digest(self) -> ExclusionList:
        if (self.count, self.digest) != (len(self.images), digest_of(self.images)):
            raise ValueError(f"the list of {len(self.images)} excluded images was changed after the run was planned "
                             f"with {self.count}; restore it, or start a new run")
        return self


class Spec(RunRequest):
    """A run request with every open choice resolved.

    With the same versions of the packages a spec gives the same result on a CPU. Every hyper-parameter is stored, so
    that a later change of a default never changes an old run.
    """

    # A stored spec is read leniently: JSON has no tuples, and its strictness belongs to requests.
    model_config = ConfigDict(frozen=True, strict=False, extra="forbid")

    dataset_title: str
    """Title of the data set."""

    fingerprint: str
    """Fingerprint of the data set's images and their order."""

    encoder: EncoderSpec
    """The encoder, with the image size resolved."""

    split: SplitName
    """Division into training and test half."""

    select: Select = "last"
    """Which epoch is kept."""

    given_labels: dict[str, str] = Field(default_factory=dict)
    """Labels assigned by a user before the start, class by image name; a resumed run uses the same labels."""

    excluded: ExclusionList = Field(default_factory=lambda: ExclusionList())
    """Images that are neither trained on nor evaluated; a resumed run leaves out the same images."""

    pairs: PairSource = "labels"
    """Source of the pairs: drawn from the labels, or given and stored in the run's folder."""

    starts_from: str | None = None
    """Id of the finished run that this run continues with further pairs; its kept state is in the folder `start`."""

    created: float = Field(default_factory=time.time)
    """Time of creation in seconds since 1970."""

    fields_format: int = FIELDS_FORMAT
    """The meaning of the hyper-parameters' values; values of older formats are renamed on reading."""

    version: str = __version__
    """The version of this project that wrote the spec."""

    versions: dict[str, str] = Field(default_factory=lambda: installed_versions())
    """Versions of Python and the numerical packages."""

    @model_validator(mode="before")
    @classmethod
    def _complete_older_version(cls, values: Any, info: ValidationInfo) -> Any:
        """Add what a stored spec of an older version lacks: encoder options and hyper-parameters."""
        match values:
            case {"encoder": dict() as encoder, "method": str() as method, "fields": dict() as fields} \
                    if info.mode == "json":
                if "version" not in values:
                    options = {name: encoder[name] for name in ("backbone", "pooling", "size") if name in encoder}
                    fields = _read_fields(FIRST_DEFAULTS).get(method, {}) | fields
                    values = options | values | {"version": FIRST_VERSION}
                if "fields_format" not in values:
                    fields = _rename_values(fields)
                added = _read_fields(ADDED_FIELDS).get(method, {})
                return values | {"fields_format": FIELDS_FORMAT, "fields": added | fields}
        return values

    def build_method(self) -> Method:
        """Build the method with its hyper-parameters."""
        return find_method(self.method).make(self.fields)

    def changed_fields(self) -> dict[str, Any]:
        """Return the hyper-parameters that are not the defaults; all of an unknown method."""
        try:
            defaults = find_method(self.method).model_fields
        except UserError:
            return self.fields
        return {name: value for name, value in self.fields.items()
                if name not in defaults or value != defaults[name].get_default()}

    @property
    def holds_out(self) -> Select:
        """The rule that holds out images; `last`, without any, if labels were assigned or judges choose the epoch."""
        return self.select if self.labels == "drawn" and self.select in HOLDING_OUT else "last"

    def halves(self, dataset: Dataset, select: Select | None = None) -> Split:
        """Divide the data set as this run does, without its excluded images.

        Args:
            dataset: The run's data set.
            select: The rule that holds out images, by default the run's.
        """
        split = make_split(dataset, self.split, self.holds_out if select is None else select, self.seed)
        return split.without(indices_of(dataset, self.excluded.images)) if self.excluded.images else split

    def few_labels(self, dataset: Dataset, train: Array) -> Array | None:
        """Return the few labels that the method receives.

        Returns:
            Labels (n,) int64, −1 where unknown; None if the method uses all labels or none.
        """
        if find_method(self.method).card.supervision != "few":
            return None
        if self.labels == "given":
            return given_labels(dataset, train, self.given_labels)
        return drawn_labels(dataset, train, self.labels_per_class or default_per_class(dataset, train), self.seed)


def _rename_values(fields: dict[str, Any]) -> dict[str, Any]:
    """Rename the values of hyper-parameters in format 1, so that its runs repeat their computation.

    There, `frozen` batch normalization trained its scale and shift, as `statistics` does now.
    """
    renamed = {"trains": {"encoder": "all"}, "batch_norm": {"frozen": "statistics"}}
    return {name: renamed.get(name, {}).get(value, value) if isinstance(value, str) else value
            for name, value in fields.items()}


@cache
def _read_fields(path: Path) -> dict[str, dict[str, Any]]:
    """Return a file's values of hyper-parameters, by method and field."""
    values: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return values


def installed_versions() -> dict[str, str]:
    """Return the versions of Python and the numerical packages."""
    return dict(_read_versions())


@cache
def _read_versions() -> dict[str, str]:
    """Read the versions once: parsing the packages' metadata takes longer than planning a run."""
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions
