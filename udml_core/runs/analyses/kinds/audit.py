"""The audit: all images of a data set compared with each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from pydantic import Field

from udml_core.runs.analyses.fields import Frames
from udml_core.runs.analyses.kind import AnalysisKind, Arrays, Material

if TYPE_CHECKING:
    from udml_core.exploration.audit import Audit


class DataAudit(AnalysisKind):
    """A comparison of all images by frozen features and, where there are images, by hashes and by alignment."""

    name = "audit"
    title = "Audit"
    noun = "audit"
    text = "audit compares all images by frozen features and hashes"
    order = 8
    arrays: ClassVar = {"content": "int n", "pairs": "int p 2", "distances": "int p", "cosines": "float p",
                        "neighbors": "int n k", "similarities": "float n k"}
    added: ClassVar = {"checked": "int c 2", "agreements": "float c"}

    # Stored, but not a part of the id: an audit has no other embedding.
    frames: Annotated[Frames, Field(exclude=True)] = ("frozen",)

    def compute(self, material: Material) -> Arrays:
        """Compare the images."""
        from udml_core.exploration.audit import audit_of, prepare_audit

        dataset = material.dataset
        prepare_audit(dataset, material.report)
        return vars(audit_of(dataset, material.vectors("frozen", np.arange(len(dataset))), material.report))

    def result(self, arrays: Arrays) -> Audit:
        """Return the audit."""
        from udml_core.exploration.audit import Audit

        return Audit(**arrays)
