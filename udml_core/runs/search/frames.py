"""The embeddings of a run by name: the one place that knows what a name stands for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any

import numpy as np

from udml_core.base.arrays import Array
from udml_core.base.errors import UserError
from udml_core.data.dataset import Dataset, Report
from udml_core.data.encoders import Encoder, EncoderSpec
from udml_core.data.features import are_features_at_hand, features_at_hand, features_of
from udml_core.methods import Embedder
from udml_core.methods.model import Model
from udml_core.numerics import galleries
from udml_core.numerics.neighbors import build_index, read_index
from udml_core.numerics.refinement import Recipe
from udml_core.numerics.refinement.linear import unit_rows
from udml_core.runs import Run
from udml_core.runs.analyses import REFINED, Analysis, find_analysis
from udml_core.runs.analyses.kinds.refine import Refinement
from udml_core.runs.search.frame import Frame, StoredIndex
from udml_core.runs.search.names import FROZEN, RECIPE, SCOPE_WORDS, Which
from udml_core.runs.search.refined import RefinedIndex, describe_refinement, stored_features_path


class Frames:
    """The embeddings of a run.

    They are `frozen` (the backbone's features), `initial` (before training), `final` (after training), each epoch by
    its number, such as `3`, with the fixed sample of test images only, each finished refinement by its id, any other
    refinement of `final` by its recipe, such as `recipe:whiten+average`, and `words`: the features of CLIP or SigLIP
    where it stands beside other encoders.
    """

    def __init__(self, run: Run, dataset: Callable[[], Dataset], count: int | None = None) -> None:
        """Refer to a run.

        Args:
            run: The run.
            dataset: Loads its data set, which some embeddings need.
            count: Number of images in the data set, which the embeddings of all images must have; unchecked if None.
        """
        self.run, self._dataset, self._count = run, dataset, count
        self._stored: dict[str, Frame] = {}
        self._models: dict[str, Model] = {}

    def names(self) -> list[str]:
        """List the embeddings that can be searched; frozen features only if they are at hand."""
        epochs = [str(number) for number in self.run.epoch_numbers() if number]
        return [*([FROZEN] if self._are_features_at_hand() else []), "initial", "final", *epochs]

    @property
    def _word_encoder(self) -> EncoderSpec | None:
        """The encoder side by side with others that reads words; None without one."""
        encoder = self.run.spec().encoder
        return encoder.of_words if encoder.parts else None

    def _are_features_at_hand(self) -> bool:
        if stored_features_path(self.run).exists():
            return True
        with suppress(UserError):  # the data set is missing
            return are_features_at_hand(self._dataset(), self.run.spec().encoder)
        return False

    def frame(self, name: str) -> Frame:
        """Return an embedding by its name, opened once.

        Raises:
            UserError: The run does not have it.
        """
        if name.startswith((REFINED, RECIPE)):
            return self.open(name)
        if name not in self._stored:
            self._stored[name] = self.open(name)
        return self._stored[name]

    def open(self, name: str) -> Frame:
        """Open an embedding, without keeping it if the run stores it.

        Raises:
            UserError: The run does not have it.
        """
        match name:
            case "initial" | "final":
                rows = self.run.embeddings(name)
                count = len(rows) if self._count is None else self._count
                return self._frame(name, _with_rows(rows, count, f"the {name} embeddings"), np.arange(count), name)
            case _ if name.startswith(REFINED):
                analysis = find_analysis(self.run, name)
                return _refined(self, analysis, analysis.stored_status().ticket)
            case _ if name.startswith(RECIPE):
                return _refined_at_once(self, name)
            case "words" if (encoder := self._word_encoder) is not None:
                rows = unit_rows(features_at_hand(self._dataset(), encoder))
                return self._frame(name, rows, np.arange(len(rows)), None)
            case _ if name not in (*self.names(), "0"):
                raise UserError(f"The run {self.run.id} has no embedding '{name[:40]}'. Choose one of "
                                f"{', '.join(self.names())}.")
            case "frozen":
                rows = unit_rows(features_at_hand(self._dataset(), self.run.spec().encoder))
                return self._frame(name, rows, np.arange(len(rows)), None)
        sample, epoch = self.run.sample_indices(), int(name)
        rows = _with_rows(self.run.epoch_sample(epoch), len(sample), f"the sample of epoch {epoch}")
        return self._frame(name, rows, sample, "final" if epoch else "initial", "fixed sample of the test half")

    def _frame(self, name: str, rows: Array, indices: Array, which: Which | None, part: str = "") -> Frame:
        """Return the frame of rows that the run stores.

        Args:
            name: The name.
            rows: Embeddings (m, l).
            indices: Image indices (m,).
            which: The embedding whose model tells whether the rows have unit length; None if they have.
            part: The images in words; empty for all.
        """
        load_model = partial(self.model, name)

        def open_index() -> StoredIndex:
            normalized = which is None or self.run.is_normalized(which)
            return StoredIndex(f"The embedding '{name}' of {self.run.id}", rows, indices, normalized,
                               self._final_index(rows) if name == "final" else build_index(rows), load_model,
                               f"has no embedding of epoch {name}: epochs keep a fixed sample of {len(indices):,} test "
                               "images. Choose a query from the sample, or another embedding.")

        return Frame(self.run, name, rows, indices, part, open_index, load_model)

    def _final_index(self, rows: Array) -> Any:
        """Return the stored index; rebuilt from the embeddings if it is missing or damaged."""
        if self._dataset().is_large:
            with suppress(UserError):
                large = galleries.StoredGallery.open(self.run.gallery_path)
                if (len(large), large.manifest.dimension) == rows.shape:
                    return large
            return build_index(rows)
        try:
            index = read_index(self.run.index_path)
        except UserError:
            return build_index(rows)
        return index if (index.ntotal, index.d) == rows.shape else build_index(rows)

    def model(self, name: str) -> Model:
        """Return the model of an embedding, loaded once.

        Raises:
            UserError: The model of an epoch or a refinement is not stored.
        """
        if name not in self._models:
            self._models[name] = Model(self._load_embedder(name), self._dataset)
        return self._models[name]

    def embedder(self, name: str) -> Embedder:
        """Return the encoder and the head of an embedding; see `model`."""
        return self.model(name).embedder

    def _load_embedder(self, name: str) -> Embedder:
        match name:
            case "frozen":
                spec = self.run.spec().encoder
                # Encoders side by side have statistics of the training images, which the run keeps.
                stored = Embedder.load(self.run.initial_embedder_path).encoder if spec.parts else None
                return Embedder(stored or Encoder(spec)).eval()
            case "words" if (encoder := self._word_encoder) is not None:
                return Embedder(Encoder(encoder)).eval()
            case "initial":
                return Embedder.load(self.run.initial_embedder_path)
            case "final":
                return Embedder.load(self.run.embedder_path)
        how, why = ("in a refinement", "a refinement has no model") if name.startswith(REFINED) else (
            f"in epoch {name}", "the models of epochs are not stored")
        raise UserError(f"Your own images cannot be embedded as {how}, because {why}. Compare the embeddings before "
                        "and after training.")

    def vectors(self, name: str, indices: Array, report: Report = lambda _share, _step: None) -> Array:
        """Return the embeddings (m, l) of images for an analysis; missing frozen features are computed.

        Raises:
            UserError: The run does not have the embedding of all images.
        """
        if name == FROZEN:
            embedder = self.embedder(FROZEN)
            return embedder.embed_features(features_of(self._dataset(), embedder.encoder, report)[indices])
        return self.open(name).take(indices)


@lru_cache(maxsize=4)
def _refined(frames: Frames, analysis: Analysis, _ticket: float) -> Frame:
    """Return the embedding of a finished refinement, opened once; again if it was computed again."""
    run, spec, result = frames.run, analysis.spec(), analysis.result_of(Refinement)
    index = RefinedIndex(run, spec, result, frames._dataset, partial(frames.frame, spec.frames[0]))
    wholes = ("all", "test") if run.spec().split == "all" else ("all",)
    is_whole = spec.scope in wholes or len(result.indices) == len(run.embeddings("final"))
    return Frame(run, analysis.id, result.embedding, result.indices,
                 "" if is_whole else f"{SCOPE_WORDS[spec.scope]}, which the refinement covers", lambda: index,
                 partial(frames.model, analysis.id),
                 describe_refinement(Recipe.parse(spec.recipe), result, spec.scope, run.spec().split == "all"))


@lru_cache(maxsize=4)
def _refined_at_once(frames: Frames, name: str) -> Frame:
    """Return the embedding after training refined by a recipe; the newest few are kept."""
    from udml_core.runs.search.at_once import refined_frame  # imports the numerics of refinement

    return refined_frame(name, frames.run, frames._dataset, partial(frames.frame, "final"))


def _with_rows(rows: Array, count: int, what: str) -> Array:
    """Return rows if there are as many as images.

    Raises:
        UserError: There are not.
    """
    if len(rows) != count:
        raise UserError(f"The run stores {what} of {len(rows):,} images in place of {count:,}. Resume the run, or "
                        "start a new one.")
    return rows
