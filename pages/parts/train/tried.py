"""What an example on the same images says of α: what it reached, and whether judges without labels support it."""

from __future__ import annotations

from dataclasses import dataclass

from udml_core.exploration.race_figures import said_words
from udml_core.runs import Run, Spec
from udml_core.work import jobs


@dataclass(frozen=True)
class TriedAlpha:
    """What an example on the same images says of α.

    Attributes:
        value: The example's α; None without an example of the same method of which a proof is known.
        proof: What it reached, in words; empty without a value.
        key: Key of the slider of α.
        is_supported: Whether judges without labels support it, so that it can be set at a click.
        verdict: What they say of it, in a sentence; empty if they do not know it.
    """

    value: float | None
    proof: str
    key: str
    is_supported: bool = False
    verdict: str = ""


def tried_alpha(spec: Spec, example: Run | None, key: str, is_labeled: bool = True) -> TriedAlpha:
    """Return what an example says of α.

    Args:
        spec: The planned run.
        example: The example on the same images; None if there is none.
        key: Key of the slider of α.
        is_labeled: Whether the images have labels; without them, the verdict of the example's judges is the only proof.
    """
    if example is None or example.spec().method != spec.method or "alpha" not in example.spec().fields:
        return TriedAlpha(None, "", key)
    verdicts, is_supported = jobs.verdicts_on(example), jobs.is_supported(example)
    said = "" if verdicts is None else said_words(*verdicts)
    proof = jobs.proof_of(example) if is_labeled else said if is_supported else ""
    if not proof:
        return TriedAlpha(None, "", key)
    sentence = f"Judges without labels see {said}." if said and is_labeled else ""
    return TriedAlpha(float(example.spec().fields["alpha"]), proof, key, is_supported, sentence)
