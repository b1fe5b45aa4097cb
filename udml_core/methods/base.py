"""The base of all methods.

A method is its hyper-parameters and its algorithm, `fit`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Self

import torch
from torch import Tensor

from udml_core.base.declaration import Options
from udml_core.base.errors import UserError
from udml_core.data.augmentation import CROPS, Augmentation
from udml_core.data.encoders import (
    Encoder,
    EncoderSpec,
    Precision,
    check_divisible,
    check_trainable,
    needs_batches,
)
from udml_core.data.training_data import Supervision, TrainingData
from udml_core.methods.embedder import Embedder
from udml_core.methods.fields import Part
from udml_core.numerics.explanations import Explanation

GRAPH_NEIGHBORS = 50
MOST_MAIN = 6
"""Fields that a form shows first."""
State = Mapping[str, Tensor]
"""Everything that `fit` needs to continue, as tensors; `epoch` () int64 is the number of the last finished epoch."""


@dataclass(frozen=True)
class Setting:
    """The circumstances of a fit besides the data.

    Attributes:
        seed: Seed of all random draws.
        device: Device of the computation.
        encoder: The frozen encoder.
        report: Called with the finished share of the epoch, 0 to 1.
        precision: Precision of an encoder in training.
        compile: Whether an encoder in training is compiled.
        observe: Called after steps within an epoch with the finished share and a function that returns the current
            embedder, which costs a copy; further training does not change the embedder.
    """

    seed: int
    device: torch.device
    encoder: Encoder
    report: Callable[[float], None] = field(default=lambda _share: None)
    precision: Precision = "auto"
    compile: bool = False
    observe: Callable[[float, Callable[[], Embedder]], None] | None = None


@dataclass(frozen=True)
class Epoch:
    """The result of one epoch.

    Attributes:
        number: Number of the epoch, from 1.
        losses: Values of the curves.
        embedder: The embedder after the epoch.
        explanations: Records for pages.
        state: Everything that `fit` needs to continue.
    """

    number: int
    losses: dict[str, float]
    embedder: Embedder
    explanations: tuple[Explanation, ...]
    state: State


@dataclass(frozen=True)
class Card:
    """The description of a method on pages and on the command line.

    Attributes:
        name: The name on the command line.
        title: The name on pages.
        paper: Authors and title.
        summary: At most two plain sentences for newcomers: what the method looks at, what it changes, when it helps
            and what it needs.
        idea: The same in the terms of the field, in about three sentences.
        supervision: The labels or pairs that `fit` receives.
        promise: `gain` if MAP@R is expected to rise above the method's own start, `may fall` if not.
        source: The evidence for the promise.
        on_fixed_features: What to expect if only a head on fixed features learns; empty without a known exception.
        order: Position in lists. Methods of papers have 10 to 290, baselines 900 and more.
    """

    name: str
    title: str
    paper: str
    summary: str
    idea: str
    supervision: Supervision
    promise: Literal["gain", "may fall"]
    source: str
    on_fixed_features: str = ""
    order: int = 500


class Method(Options, ABC):
    """A method: its hyper-parameters as fields, and its algorithm in `fit`.

    Each field has a range, a meaning, a symbol and a unit.

    Attributes:
        card: Name, title, paper, idea, supervision and promise.
        rank_shows_collapse: Whether an effective rank far from the start's shows a collapse.
        main_fields: The fields that matter most, in the order of forms, at most `MOST_MAIN`; by default the first ones.
        fields_when_continued: The fields that a continued run may change; empty if the method cannot continue.
        needs_different_images: Whether `fit` fails if all images are the same.
        shares_batches: Whether several processes can work on one batch.
        clusters_by_ascent: Whether the method clusters by authority ascent, at its fields ε and γ.
    """

    card: ClassVar[Card]
    rank_shows_collapse: ClassVar[bool] = True
    main_fields: ClassVar[tuple[str, ...]] = ()
    fields_when_continued: ClassVar[tuple[str, ...]] = ()
    needs_different_images: ClassVar[bool] = False
    shares_batches: ClassVar[bool] = False
    clusters_by_ascent: ClassVar[bool] = False

    @classmethod
    def form_fields(cls) -> tuple[list[str], list[str]]:
        """Return the names of the fields that a form shows first, and of the others."""
        names = list(cls.model_fields)
        main = list(cls.main_fields) or names[:MOST_MAIN]
        return main, [name for name in names if name not in main]

    @property
    def trains_encoder(self) -> bool:
        """Whether `fit` trains some layers of the encoder.

        By default the field `trains` decides.
        """
        return self.trained_part != "head"

    @property
    def trained_part(self) -> Part:
        """The trained part of encoder and head, by default the field `trains`."""
        part: Part = getattr(self, "trains", "head")
        return part

    @property
    def learns_from_vectors(self) -> bool:
        """Whether `fit` works on plain feature vectors, without images or augmented views."""
        return not self.trains_encoder and not self.views_needed

    @property
    def needs_images(self) -> str:
        """Why `fit` needs images rather than vectors, as a part of a sentence; see `learns_from_vectors`."""
        if self.trained_part != "head" and not self.cached_views:
            return f"trains an encoder of images at trains='{self.trained_part}'"
        return "learns from random views of images"

    @property
    def cached_views(self) -> int:
        """The number of views of each image that are cached for the head or the last blocks; 0 without random views.

        By default the field `kept_views` decides.
        """
        return int(getattr(self, "kept_views", 0))

    @property
    def views_needed(self) -> int:
        """The number of augmented views of each training image.

        `fit` needs the frozen features of these views.
        """
        return self.cached_views if self.trained_part == "head" else 0

    @property
    def activations_needed(self) -> int:
        """The number of views whose activations after the early blocks `fit` needs, the whole image among them.

        Without random views it is the whole image alone.
        """
        return max(1, self.cached_views) if self.trained_part == "last" else 0

    @property
    def crops_images(self) -> bool:
        """Whether `fit` crops random views from images."""
        return self.trained_part == "all" and self.cached_views > 0

    @property
    def continues_with_pairs(self) -> bool:
        """Whether a finished run can continue with further pairs."""
        return bool(self.fields_when_continued)

    @property
    def continues_on_new_vectors(self) -> bool:
        """Whether further pairs may contain vectors that earlier epochs did not contain."""
        return self.continues_with_pairs

    @property
    def augmentation(self) -> Augmentation:
        """The random augmentation of the views."""
        return CROPS

    @property
    def positive_only(self) -> bool:
        """Whether `fit` rejects features below 0."""
        return False

    @property
    def epochs_planned(self) -> int:
        """The number of epochs that `fit` yields from the start."""
        return int(getattr(self, "epochs", 1))

    def graph_neighbors(self, images: int) -> int:
        """Return the number k of neighbors in the graph stored with a run.

        `images` is the number of training images.
        """
        return int(getattr(self, "n_neighbors", min(GRAPH_NEIGHBORS, images - 1)))

    def expected_seconds(self, images: int, width: int, image_seconds: float) -> float:
        """Estimate the time of one epoch on two CPU cores.

        Args:
            images: Number of training images.
            width: Dimension d of the features.
            image_seconds: Time of one forward pass of one image.
        """
        return 1e-10 * images * width**2 + 0.5

    def expected_bytes(self, images: int, width: int) -> float:
        """Estimate the memory of training without the encoder.

        Args:
            images: Number of training images.
            width: Dimension d of the features.
        """
        return 12.0 * images * width

    def check(self, images: int, width: int | None) -> None:
        """Reject fields that cannot work, before anything is computed.

        Args:
            images: Number of training images.
            width: Dimension d of the features; None if only the loaded network knows it.

        Raises:
            UserError: The message names the field, the allowed values and the fix.
        """

    def check_encoder(self, encoder: EncoderSpec) -> None:
        """Reject an encoder that the method cannot train with its fields `trains` and `batch_norm`.

        Raises:
            UserError: The encoder has nothing to train, has no last blocks, or trains from scratch with frozen
                statistics. The message names the field and the fix.
        """
        if not self.trains_encoder:
            return
        check_trainable(encoder)
        if self.trained_part == "last":
            check_divisible(encoder)
        batch_norm = getattr(self, "batch_norm", "batch")
        if batch_norm != "batch" and needs_batches(encoder):
            raise UserError(f"{type(self).__name__}.batch_norm must be 'batch' because {encoder.backbone} trains from "
                            f"scratch and has no learned statistics to keep, got '{batch_norm}'. Set the field "
                            "'batch_norm' to 'batch'.")

    def suited(self, features: Tensor) -> Self:
        """Return the method with other defaults where its own cannot work with some features (n, d).

        Values that the user gave stay.
        """
        return self

    def check_features(self, features: Tensor) -> None:
        """Reject features that the method cannot learn from, if they are known before a run starts.

        Args:
            features: Pooled features (n, d) of the training half.

        Raises:
            UserError: The message names the field and the fix.
        """

    def initial(self, data: TrainingData, setting: Setting) -> Embedder:
        """Return the embedder that `fit` starts from at this seed.

        For closed-form methods it has the frozen features.
        """
        return Embedder(setting.encoder)

    @abstractmethod
    def fit(self, data: TrainingData, setting: Setting, start: State | None = None) -> Iterator[Epoch]:
        """Train and yield after every epoch; continue after `start` if it is given."""

    def continue_fit(self, data: TrainingData, setting: Setting, state: State, epochs: int) -> Iterator[Epoch]:
        """Continue a trained model for some epochs on the pairs of `data`.

        Args:
            data: Features of the width that the model was trained with, and pairs of these.
            setting: Seed, device and encoder.
            state: The state after the last epoch.
            epochs: Number of further epochs.
        """
        raise UserError(f"{self.card.title} cannot continue with further pairs. "
                        "Choose a method that learns from pairs.")

    def state_to_continue(self, state: State) -> State:
        """Return the state from which a new run continues a finished run."""
        return state

    def extra_candidates(self, embedder: Embedder, final: Tensor) -> dict[str, Tensor]:
        """Return further embeddings to evaluate beside the final one, by name.

        Args:
            embedder: The trained embedder.
            final: Final embeddings (b, l).
        """
        return {}

    def embedder_explanations(self, embedder: Embedder) -> tuple[Explanation, ...]:
        """Return explanations computed from an epoch's embedder."""
        return ()
