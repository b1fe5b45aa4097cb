"""The single declaration of a run's options.

The options of `udml train`, the widgets of the page Lab, the validation messages and the stored spec are generated
from these fields. To add an option, add a field here.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from udml_core.base.declaration import Options, Shown, describe
from udml_core.base.paths import is_exposed
from udml_core.data.encoders import BACKBONES, DEFAULT_BACKBONE, Pooling, Precision
from udml_core.data.encoders.encoder import LARGEST, SMALLEST
from udml_core.data.encoders.text_folder import PREFIX, named_folders
from udml_core.data.given.pair_sets import MOST_PAIRS
from udml_core.data.label_budget import PER_CLASS, PER_SMALL_CLASS, SMALL_CLASS, LabelSource
from udml_core.data.splits import VALIDATION_SHARE, Select, SplitName
from udml_core.numerics.refinement.recipe import Whitening

HIGHEST_SEED = 2**31 - 1
CHOSEN_FIRST = ("dataset", "method", "preset", "fields")
"""Fields that forms show first, with widgets of their own."""


def backbone_titles() -> dict[str, str]:
    """Return the titles of the named backbones, and of folders of CLIP and SigLIP that this user has named."""
    named = [] if is_exposed() else named_folders()
    return {name: backbone.title for name, backbone in BACKBONES.items()} | {
        f"{PREFIX}{folder}": f"{folder.name}, images and words" for folder in named}


class RunRequest(Options):
    """The options of a run, as a user requests them."""

    message_prefix: ClassVar[str | None] = ""

    dataset: str
    """The name of a data set, or a folder of images."""

    method: str
    """The name of a method."""

    fields: dict[str, Any] = Field(default_factory=dict)
    """Hyper-parameters of the method by name."""

    preset: Annotated[Literal["default", "paper"], Shown(label="Settings")] = "default"
    """Start from the default values, or from all settings that the method's paper prints (paper). Fields and options
    that you set yourself replace the paper's and are listed as departures."""

    backbone: Annotated[str, Shown(suggestions=backbone_titles)] = DEFAULT_BACKBONE
    """Network whose features the method starts from: a listed name, timm:NAME, torchvision:NAME, or clip:FOLDER
    for your own folder of CLIP or SigLIP, by which words find images. pixels: the images themselves, without a network.
    Several side by side: efficientnet-lite0+squeezenet, or with a weight efficientnet-lite0+squeezenet:0.7."""

    whitening: Annotated[Whitening, Shown(label="Whitening of several encoders")] = "together"
    """What is whitened where several encoders stand side by side: their joint vector (together), the features of each
    (each), or nothing (none). Its statistics come from the training images."""

    weights: Annotated[str | None, Shown(placeholder="downloaded")] = None
    """File with the weights of timm:NAME or torchvision:NAME in the format safetensors, for machines without a network.
    Default: downloaded on first use. Of clip:FOLDER: the folder, where the backbone names it without its path."""

    pooling: Pooling = "mean"
    """Pooling of feature maps. R-MAC reads the image at three scales, as RPML and SSDML do; it is slower."""

    size: Annotated[int | None, Field(ge=SMALLEST, le=LARGEST),
                    Shown(label="Image size", unit="pixels", step=16, placeholder="chosen by the data set")] = None
    """Side of the square that images are resized to. Default: chosen by the data set."""

    split: Annotated[SplitName | None, Shown(placeholder="chosen by the data set")] = None
    """Division into training and test half: by classes (zero-shot), by images of every class (seen), or none, so that
    both halves are the whole data set (all). Default: zero-shot for data sets of at least 4 classes, else all."""

    exclusions: Annotated[Literal["listed", "none"], Shown(label="Excluded images")] = "listed"
    """Leave out the images on the data set's exclusion list (listed), or use all images (none)."""

    device: Annotated[str, Shown(suggestions=lambda: {"auto": "auto", "cpu": "cpu"})] = "auto"
    """Device of the computation: auto, cpu, cuda:N, or cuda:all for one process on each GPU."""

    processes: Annotated[int, Field(ge=1, le=64), Shown(step=1)] = 1
    """Processes that share every batch, each on a GPU of its own, or all on the CPU."""

    precision: Precision = "auto"
    """Precision of an encoder in training: bfloat16 where that is safe, or float32 throughout. auto takes bfloat16 on a
    GPU."""

    compile: Annotated[bool, Shown(label="Compile the encoder")] = False
    """Compile an encoder that is trained as a whole. The first steps take minutes; long runs on a GPU gain most."""

    seed: Annotated[int, Field(ge=0, le=HIGHEST_SEED)] = 0
    """Seed of all random draws."""

    select: Annotated[Select | None, Field(description=(
        f"Which epoch is kept: the last, or the best on {100 * VALIDATION_SHARE:g} % of the training half, by MAP@R "
        "(validation) or by R@1 (recall) on a share of each class, or by MAP@R on a share of the classes "
        "(classes), or without labels the last epoch unless an encoder that took no part finds another surely better "
        "(judges). Labels that you assigned select by leave-one-out R@1 and hold out no image. Default: validation "
        "with assigned labels; judges for methods without labels if all images are trained on; else last.")),
        Shown(label="Keep the epoch", placeholder="chosen by labels or judges", options=("--select", "--keep"))] = None

    patience: Annotated[int | None, Field(ge=1, le=1000), Shown(
        label="Stop after falling epochs", step=1, high=20, unit="epochs", placeholder="never")] = None
    """Stop the training after so many epochs in a row that the judges find surely worse than the best. Needs select
    'judges'. Default: train all epochs."""

    labels: Annotated[LabelSource, Shown(supervision=("few",))] = "drawn"
    """Labels for methods that learn from few labels: drawn from the data set, or assigned in the app (given)."""

    labels_per_class: Annotated[int | None, Field(ge=1, description=(
        f"Number of labels drawn from each class. Default: {PER_CLASS}; {PER_SMALL_CLASS} if the median class of the "
        f"training half has fewer than {SMALL_CLASS} images.")), Shown(
            supervision=("few",), step=1, high=1000, placeholder=f"{PER_CLASS}, or {PER_SMALL_CLASS} for small classes",
        )] = None

    most_pairs: Annotated[int, Field(ge=2, le=MOST_PAIRS), Shown(
        label="Pairs drawn, at most", supervision=("pairs",), step=1000, options=("--pairs",))] = MOST_PAIRS
    """Largest number of pairs drawn from the labels; half of them similar, half dissimilar."""


def form_options(request: type[RunRequest], supervision: str = "") -> list[str]:
    """List the options that a form shows after data set, method and hyper-parameters.

    Args:
        request: The declaration.
        supervision: The kind of supervision whose own options are listed; empty for the options of all methods.
    """
    return [field.name for field in describe(request) if field.name not in CHOSEN_FIRST
            and (supervision in field.shown.supervision if supervision else not field.shown.supervision)]
