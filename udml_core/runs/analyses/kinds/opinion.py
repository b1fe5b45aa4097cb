"""The second opinion: embeddings of a run compared without labels, by encoders that took no part in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from udml_core.base.arrays import evenly_spaced
from udml_core.base.errors import UserError
from udml_core.runs.analyses.fields import Frames, Images, Judges
from udml_core.runs.analyses.kind import AnalysisKind, Arrays, Material

if TYPE_CHECKING:
    from udml_core.numerics.second_opinion import Opinion, Verdict
    from udml_core.runs import Run

JUDGES = ("efficientnet-lite0", "squeezenet")
"""The encoders that judge by default; the run's own does not."""
QUESTIONS = {"first results": "first_results", "groups": "groups"}
"""The attribute of an opinion by its name in words."""
SHOWN = ("difference", "low", "high")
"""What the command line says of an interval."""


@dataclass(frozen=True)
class Opinions:
    """What several judges say of a run's embeddings.

    Attributes:
        reference: The frame that the others are compared with.
        opinions: By frame and judge, the opinion on the frame.
    """

    reference: str
    opinions: Mapping[str, Mapping[str, Opinion]]

    def verdicts(self, frame: str) -> tuple[Verdict, Verdict]:
        """Return what the majority of the judges says of a frame's first results and groups."""
        from udml_core.numerics.second_opinion import vote

        first, groups = (vote([getattr(opinion, question) for opinion in self.opinions[frame].values()])
                         for question in QUESTIONS.values())
        return first, groups


class SecondOpinion(AnalysisKind):
    """A comparison of embeddings by encoders that took no part in them."""

    name = "opinion"
    title = "Second opinion"
    noun = "second opinion"
    text = "opinion compares embeddings without labels by encoders that took no part in them"
    order = 9
    arrays: ClassVar = {"compared": "text f", "encoders": "text j", "values": "float f j 2 3"}

    scope: Images = "test"
    frames: Frames = ("frozen", "final")
    judges: Judges = JUDGES

    def check(self) -> None:
        """Reject a single embedding."""
        if len(self.frames) < 2:
            raise ValueError(f"a {self.noun} compares embeddings with the first; name at least two frames, got "
                             f"{', '.join(self.frames)}")

    def check_run(self, run: Run) -> None:
        """Reject a table of embeddings, unknown judges, and judges that took part in the run."""
        from udml_core.data.encoders import check_backbone, check_reads_images

        spec = run.spec()
        check_reads_images(spec.encoder, "A second opinion", "Import the images of the table")
        for judge in self.judges:
            check_backbone(judge)
        if not self.independent(spec.backbone):
            raise UserError(f"{spec.backbone} took part in this run and cannot judge it. Choose another judge, such as "
                            f"{next(judge for judge in JUDGES if judge != spec.backbone)}.")

    def independent(self, backbone: str) -> tuple[str, ...]:
        """Return the judges without a run's own backbone, whose students its embeddings are."""
        return tuple(judge for judge in self.judges if judge != backbone)

    def compute(self, material: Material) -> Arrays:
        """Let each judge compare every embedding with the first."""
        from udml_core.numerics.second_opinion import GROUP, IMAGES, QUERIES, Judge, judge_rankings

        indices, judges = material.indices(self.scope), self.independent(material.backbone)
        indices = indices[evenly_spaced(len(indices), IMAGES)]
        queries = evenly_spaced(len(indices), QUERIES)
        reference, *others = (material.ranking(frame, indices, queries, GROUP) for frame in self.frames)
        values = np.empty((len(others), len(judges), len(QUESTIONS), 3))
        for column, name in enumerate(judges):
            judge = Judge.of(material.judge_features(name)[indices])
            for row, other in enumerate(others):
                opinion = judge_rankings(judge, queries, reference, other)
                values[row, column] = [(of.before, of.after, of.error)
                                      for of in (getattr(opinion, question) for question in QUESTIONS.values())]
                material.report((column + (row + 1) / len(others)) / len(judges), "comparing results")
        return {"compared": np.array(self.frames[1:]), "encoders": np.array(judges), "values": values}

    def result(self, arrays: Arrays) -> Opinions:
        """Return the opinions by frame and judge."""
        from udml_core.numerics.second_opinion import Interval, Opinion

        return Opinions(self.frames[0], {
            frame: {judge: Opinion(*(Interval(*map(float, interval)) for interval in questions))
                    for judge, questions in zip(arrays["encoders"].tolist(), of_frame, strict=True)}
            for frame, of_frame in zip(arrays["compared"].tolist(), arrays["values"], strict=True)})

    def findings(self, read: Callable[[], Any]) -> dict[str, Any]:
        """Return each judge's differences with their intervals.

        The command line states no verdict: `experiments.second_opinion` measures first how often it would be right.
        """
        result: Opinions = read()
        return {"reference": result.reference, "opinions": {frame: {judge: {
            name: {value: getattr(getattr(opinion, question), value) for value in SHOWN}
            for name, question in QUESTIONS.items()} for judge, opinion in judges.items()}
            for frame, judges in result.opinions.items()}}

    @staticmethod
    def lines(findings: Mapping[str, Any]) -> list[str]:
        """Return each judge's interval of each question in a line."""
        return [f"{frame} against {findings['reference']}, {judge}, {name}: {of['difference']:+.4f}, 95 % interval "
                f"{of['low']:+.4f} to {of['high']:+.4f}"
                for frame, judges in findings["opinions"].items() for judge, names in judges.items()
                for name, of in names.items()]
