"""Refinement: what an unlabeled gallery knows about itself.

A recipe of steps improves the embeddings of a finished run without training and without labels. `Refiner` applies a
recipe to arrays; `views` computes features of several views of each image.
"""

from typing import TYPE_CHECKING, Any

from udml_core.numerics.refinement.recipe import STEPS, Recipe, Step, make_step

if TYPE_CHECKING:
    from udml_core.numerics.refinement.refiner import Ranking, Refiner

__all__ = ["STEPS", "Ranking", "Recipe", "Refiner", "Step", "make_step"]


def __getattr__(name: str) -> Any:
    """Import the numerics at their first use; the command line needs the recipes only."""
    if name in ("Ranking", "Refiner"):
        from udml_core.numerics.refinement import refiner

        return getattr(refiner, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
