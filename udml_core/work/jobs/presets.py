"""Settings as the papers print them, read from `presets.toml`.

A preset sets hyper-parameters and options of a run for one method and one kind of images. What a machine cannot have,
such as GoogLeNet's weights, is set to the nearest and counts as a departure, as does every value that a user changes.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from udml_core.base.errors import UserError
from udml_core.data.dataset import Dataset
from udml_core.methods import find_method
from udml_core.numerics.measures import measure_of
from udml_core.runs import RunRequest, Spec
from udml_core.work.jobs.settings import Settings

PRESETS = Path(__file__).with_name("presets.toml")
SMALL = 32
"""Longest side in pixels of images that the papers train small networks on."""
LOSSY = (".jpg", ".jpeg", ".webp")
"""Extensions of files that change the pixels of a lossless data set."""

ImageKind = Literal["gray", "color", "stl10", "photographs"]
KINDS: tuple[ImageKind, ...] = get_args(ImageKind)


@dataclass(frozen=True)
class PresetValue:
    """A value of a preset.

    Attributes:
        value: The value of a field or an option.
        source: Where the paper prints it.
        printed: What the paper has, if a machine cannot have it and `value` is the nearest; else empty.
    """

    value: Any
    source: str
    printed: str = ""


@dataclass(frozen=True)
class OriginalData:
    """A data set of a paper.

    Attributes:
        title: Name in the papers.
        images: Number of images.
        classes: Number of classes.
        train: Number of images in the paper's training half.
        test: Number of images in the paper's test half.
        lossless: Whether a lossy copy of the images differs from the original.
        side: Shorter side of the images in pixels, where it identifies the data set; else 0.
        kind: The kind of the images, where their size and color do not decide it.
        division: How the paper divides the images, if the data set has no official halves and no split does the same.
    """

    title: str
    images: int
    classes: int
    train: int
    test: int
    lossless: bool = False
    side: int = 0
    kind: ImageKind | None = None
    division: str = ""

    def equals(self, dataset: Dataset) -> bool:
        """Return whether a data set has this one's images and classes, by their numbers."""
        classes = int(np.count_nonzero(dataset.class_sizes))
        return (self.images, self.classes) == (len(dataset), classes) and self.side in (0, dataset.native_size)


@dataclass(frozen=True)
class Preset:
    """The settings that a paper prints for a method and a kind of images.

    Attributes:
        method: Name of the method.
        images: The kind of images.
        paper: Short name of the paper.
        fields: Hyper-parameters by name.
        options: Options of the run by name.
        silent: Hyper-parameters on which the paper is silent; they keep their defaults.
        data: The paper's data sets.
        measures: Measures that the paper reports.
        unavailable: Differences from the paper that no option expresses.
    """

    method: str
    images: ImageKind
    paper: str
    fields: Mapping[str, PresetValue] = field(default_factory=dict)
    options: Mapping[str, PresetValue] = field(default_factory=dict)
    silent: tuple[str, ...] = ()
    data: tuple[OriginalData, ...] = ()
    measures: tuple[str, ...] = ()
    unavailable: tuple[str, ...] = ()

    def field_values(self) -> dict[str, Any]:
        """Return the printed hyper-parameters by name."""
        return {name: entry.value for name, entry in self.fields.items()}

    def option_values(self) -> dict[str, Any]:
        """Return the printed options of a run by name."""
        return {name: entry.value for name, entry in self.options.items()}

    def settings(self) -> Settings:
        """Return the printed values as the settings of a run."""
        measures = ", ".join(measure_of(key).name for key in self.measures)
        return Settings("paper", self.field_values(), self.option_values(), f"The paper of {self.paper} reports "
                        f"{measures}. Its training can take days on a CPU; see the expected time.")

    def own_departures(self) -> list[str]:
        """List what the preset itself has in place of the paper's settings."""
        nearest = [f"{name}: {show(entry.value)} in place of {entry.printed} ({entry.source})"
                   for name, entry in {**self.options, **self.fields}.items() if entry.printed]
        return [*nearest, *self.unavailable]

    def changes(self, spec: Spec) -> list[str]:
        """List the settings of a run that differ from the preset; silent fields must have their defaults."""
        defaults = find_method(self.method).make({}).model_dump()
        expected = {name: PresetValue(value, "the paper is silent; this is the default")
                    for name, value in defaults.items()} | dict(self.fields)
        pairs = [(name, entry, spec.fields.get(name)) for name, entry in expected.items()]
        pairs += [(name, entry, getattr(spec, name)) for name, entry in self.options.items()]
        return [f"{name}: {show(value)} in place of {show(entry.value)} ({entry.source})"
                for name, entry, value in pairs if value != entry.value]


def image_kind(dataset: Dataset) -> ImageKind:
    """Return the kind of a data set's images.

    Images of at most 32 pixels are gray or color, larger images photographs. STL-10 is a kind of its own, because its
    papers train small networks on it without ImageNet weights.
    """
    if dataset.native_size <= SMALL:
        return "gray" if dataset.gray else "color"
    return next((data.kind for data in original_data().values() if data.kind and data.equals(dataset)), "photographs")


@cache
def original_data() -> dict[str, OriginalData]:
    """Return the papers' data sets by their names in `presets.toml`."""
    return {name: OriginalData(**entry) for name, entry in _read()["data"].items()}


def find_preset(method: str, images: ImageKind) -> Preset | None:
    """Return the preset of a method, or None if no paper prints settings for it.

    If the paper has no settings for such images, the settings for another kind are used, as a departure.
    """
    known = {kind: preset for kind in KINDS if (preset := read_preset(method, kind))}
    if images in known or not known:
        return known.get(images)
    other = list(known.values())[-1]
    return Preset(method, images, other.paper, other.fields, other.options, other.silent, (), other.measures,
                  (*other.unavailable, f"Images: the paper has no settings for such images; its settings for "
                                       f"{_KIND_WORDS[other.images]} are used"))


def require_preset(method: str, images: ImageKind) -> Preset:
    """Return the preset of a method.

    Raises:
        UserError: No paper prints settings for the method.
    """
    preset = find_preset(method, images)
    if preset is None:
        from udml_core.methods import METHODS  # loads the files of all methods

        names = ", ".join(other.card.name for other in METHODS if find_preset(other.card.name, images))
        raise UserError(f"No paper prints settings for {method}. Remove the preset, or choose one of {names}.")
    return preset


def apply_preset(request: RunRequest, dataset: Dataset) -> RunRequest:
    """Fill in the paper's settings where the request does not set a value itself.

    Raises:
        UserError: No paper prints settings for the method.
    """
    if request.preset != "paper":
        return request
    settings = require_preset(find_method(request.method).card.name, image_kind(dataset)).settings()
    if request.labels == "given":  # the paper's label budget and selection apply to drawn labels
        settings = replace(settings, options={name: value for name, value in settings.options.items()
                                              if name not in ("labels_per_class", "select")})
    return settings.fill(request)


def departures(spec: Spec, dataset: Dataset) -> list[str]:
    """List every difference between a run and the settings that the paper prints."""
    preset = require_preset(spec.method, image_kind(dataset))
    changes = preset.changes(spec)
    if spec.pairs == "given":
        changes.append("pairs: given pairs in place of pairs drawn from the classes")
    changed = {text.partition(":")[0] for text in changes}
    return [text for text in preset.own_departures() if text.partition(":")[0] not in changed] + changes


def why_not_comparable(spec: Spec, dataset: Dataset) -> list[str]:
    """List why a run's results cannot be compared with the paper's printed figures.

    They can, and the list is empty, if the run has every printed setting and its data are the paper's original data.
    """
    preset = find_preset(spec.method, image_kind(dataset))
    if preset is None:
        return [f"No paper prints settings for {spec.method}."]
    return [*departures(spec, dataset), *_why_not_original(spec, dataset, preset.data)]


def _why_not_original(spec: Spec, dataset: Dataset, known: tuple[OriginalData, ...]) -> list[str]:
    """List why a run's data are none of a paper's data sets."""
    original = next((data for data in known if data.equals(dataset)), None)
    if original is None:
        classes = int(np.count_nonzero(dataset.class_sizes))
        titles = " or ".join(data.title for data in known) or "known here"
        return [f"Data: {dataset.title} with {len(dataset):,} images of {classes} classes is not {titles}"]
    reasons = []
    halves = spec.halves(dataset, "last")
    for name, count, printed in (("training", len(halves.train), original.train),
                                 ("test", len(halves.test), original.test)):
        if count != printed:
            reasons.append(f"Data: {count:,} {name} images in place of {printed:,}")
    if original.division and dataset.official_test is None:
        reasons.append(f"Data: the division of the split '{spec.split}' in place of the paper's: {original.division}")
    if original.lossless and any(name.lower().endswith(LOSSY) for name in dataset.names):
        reasons.append(f"Data: a lossy copy of {original.title}")
    return reasons


def show(value: Any) -> str:
    """Return a value as the command line takes it."""
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


@cache
def read_preset(method: str, images: ImageKind) -> Preset | None:
    """Merge the blocks of a method and a kind of images; None if there are none."""
    blocks = [block for block in _read()["preset"] if method in block["methods"] and images in block["images"]]
    if not blocks:
        return None
    merged: dict[str, Any] = {"paper": "", "fields": {}, "options": {}, "silent": (), "data": (), "measures": (),
                              "departures": ()}
    for block in blocks:
        for name in ("fields", "options"):
            merged[name] |= {key: PresetValue(**entry) for key, entry in block.get(name, {}).items()}
        merged["silent"] += tuple(block.get("silent", ()))
        merged["departures"] += tuple(block.get("departures", ()))
        merged |= {name: block[name] for name in ("paper", "data", "measures") if name in block}
    data = tuple(original_data()[name] for name in merged["data"])
    return Preset(method, images, merged["paper"], merged["fields"], merged["options"], merged["silent"], data,
                  tuple(merged["measures"]), merged["departures"])


@cache
def _read() -> dict[str, Any]:
    return tomllib.loads(PRESETS.read_text(encoding="utf-8"))


_KIND_WORDS = {"gray": "small gray images", "color": "small color images", "stl10": "STL-10",
               "photographs": "photographs"}
