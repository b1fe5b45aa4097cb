"""The exact evaluation: every test image as a query, where the run's evaluation has asked a sample."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from pydantic import Field

from udml_core.base.errors import UserError
from udml_core.runs.analyses.fields import Frames, Scope
from udml_core.runs.analyses.kind import AnalysisKind, Arrays, Material

if TYPE_CHECKING:
    from udml_core.runs import Run


class ExactEvaluation(AnalysisKind):
    """An evaluation with every test image as a query, which replaces the sampled evaluation of the run."""

    name = "exact"
    title = "Exact evaluation"
    noun = "exact evaluation"
    text = "exact evaluates with every test image as a query"
    order = 10
    arrays: ClassVar = {"embeddings": "text c", "measures": "text m", "values": "float c m"}

    scope: ClassVar[Scope] = "test"
    # Stored, but not a part of the id: an evaluation has always the same embeddings.
    frames: Annotated[Frames, Field(exclude=True)] = ("final",)

    def check_run(self, run: Run) -> None:
        """Reject a run whose evaluation has asked every test image."""
        final = (run.evaluation() or {}).get("final") or {}
        if final and not final.get("queries"):
            does_ask = any(name.startswith(("recall@", "mprec@")) for name in final)
            raise UserError(f"The evaluation of {run.id} " + (
                f"has asked all of its {final['images']:,.0f} test images." if does_ask else
                "asks no image, because its test images have no labels.") + " There is nothing to add.")

    def expected_bytes(self, images: int, width: int, largest: int) -> float:
        """Estimate the frozen features beside an embedding, which is ranked in float64."""
        return 28.0 * images * width

    def compute(self, material: Material) -> Arrays:
        """Evaluate, and store the measures with the run and here; an embedding without a measure has NaN."""
        measured = material.evaluate_exactly()
        names = list(dict.fromkeys(name for measures in measured.values() for name in measures))
        return {"embeddings": np.array(list(measured)), "measures": np.array(names),
                "values": np.array([[measures.get(name, np.nan) for name in names] for measures in measured.values()])}

    def result(self, arrays: Arrays) -> Mapping[str, Mapping[str, float]]:
        """Return the measures by embedding and name."""
        names = arrays["measures"].tolist()
        return {embedding: {name: value for name, value in zip(names, values, strict=True) if not np.isnan(value)}
                for embedding, values in zip(arrays["embeddings"].tolist(), arrays["values"].tolist(), strict=True)}
