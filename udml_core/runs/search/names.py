"""The names of a run's embeddings: what each stands for and is called, and the words for the images of an analysis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from udml_core.results.embedding_words import words_of
from udml_core.runs.analyses import REFINED, Scope
from udml_core.runs.verdict import has_labels

if TYPE_CHECKING:
    from udml_core.runs import Run, Spec

Which = Literal["initial", "final"]
TRAINED: tuple[Which, ...] = ("initial", "final")
FROZEN, FINAL = "frozen", "final"
WORDS = "words"
"""The features of the encoder that reads words, where several encoders stand side by side."""
RECIPE = "recipe:"
"""Begins the name of the embedding after training, refined at once by the recipe that follows."""
OF_ALL = "all:"
"""Stands before the recipe that refines all images, not the test half alone."""
SCOPE_WORDS: dict[Scope, str] = {"all": "all images", "test": "test half", "train": "training half",
                               "sample": "fixed sample"}


def frame_words(name: str, run: Run | None = None) -> str:
    """Return the name of an embedding in words, such as `after training`.

    Frozen features are not trained, so that their embedding has one name; where no labels measure them, it is that of
    the search with them.

    Args:
        name: `frozen`, `initial`, `final`, the number of an epoch, the id of a refinement, or `recipe:` and a recipe.
        run: The run; with it, also the epoch that it keeps is `after training`.
    """
    if name.startswith((REFINED, RECIPE)):
        name = "refined"
    elif run is not None:
        name = FROZEN if run.spec().method == FROZEN else trained_name(run, name)
        if name == FROZEN:
            evaluation = run.evaluation()
            name = "plain" if evaluation is not None and not has_labels(evaluation) else frozen_name(run.spec())
    return words_of(name).sentence


def frozen_name(spec: Spec) -> str:
    """Return the name under which `words_of` finds the words for a run's frozen features."""
    return "pixels" if spec.backbone == "pixels" else FROZEN


def features_words(*specs: Spec) -> str:
    """Return what the images of runs are compared by without training: raw pixels if all are, else frozen features."""
    names = {frozen_name(spec) for spec in specs}
    return words_of(names.pop() if len(names) == 1 else FROZEN).sentence


def epoch_words(run: Run, epoch: int) -> str:
    """Return the name of an epoch's embedding in words: before training, epoch 3, or after training."""
    return words_of(trained_name(run, str(epoch))).sentence


def epoch_of(name: str) -> int | None:
    """Return the epoch whose embedding has a name; None for an embedding that is not named by its epoch."""
    return int(name) if name.isdecimal() else None


def trained_name(run: Run, name: str) -> str:
    """Return `initial` or `final` for the epoch that is the embedding before or after training, else the name."""
    epoch = epoch_of(name)
    return name if epoch is None else "initial" if not epoch else "final" if epoch == run.kept_epoch() else name
