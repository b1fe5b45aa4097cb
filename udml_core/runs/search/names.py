"""The names of a run's embeddings, and the words for them and for the images of an analysis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from udml_core.runs.analyses import REFINED, Scope

if TYPE_CHECKING:
    from udml_core.runs import Run

Which = Literal["initial", "final"]
TRAINED: tuple[Which, ...] = ("initial", "final")
FROZEN = "frozen"
WORDS = {FROZEN: "frozen features", "initial": "before training", "0": "before training", "final": "after training"}
SCOPE_WORDS: dict[Scope, str] = {"all": "all images", "test": "test half", "train": "training half",
                               "sample": "fixed sample"}


def frame_words(name: str, run: Run | None = None) -> str:
    """Return the name of an embedding in words, such as `after training`.

    Frozen features are not trained, so that their embedding has one name.

    Args:
        name: `frozen`, `initial`, `final`, the number of an epoch, or the id of a refinement.
        run: The run; with it, also the epoch that it keeps is `after training`.
    """
    if name.startswith(REFINED):
        return "refined"
    if run is not None and run.spec().method == FROZEN:
        return WORDS[FROZEN]
    return epoch_words(run, int(name)) if run is not None and name.isdecimal() else WORDS.get(name, f"epoch {name}")


def epoch_words(run: Run, epoch: int) -> str:
    """Return the name of an epoch's embedding in words: before training, epoch 3, or after training."""
    return WORDS["initial"] if not epoch else WORDS["final"] if epoch == run.kept_epoch() else f"epoch {epoch}"
