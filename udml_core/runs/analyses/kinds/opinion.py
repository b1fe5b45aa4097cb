"""The second opinion: embeddings of a run compared without labels, by encoders that took no part in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from udml_core.base.arrays import Integers, evenly_spaced
from udml_core.base.errors import UserError, listed
from udml_core.data.encoder_names import encoders_in
from udml_core.data.judge_names import WEAK
from udml_core.numerics.refinement.recipe import Recipe
from udml_core.runs.analyses.fields import REFINED, Frames, Images, Judges
from udml_core.runs.analyses.kind import AnalysisKind, Arrays, Material
from udml_core.runs.analyses.kinds.refine import fit_refiner

if TYPE_CHECKING:
    from udml_core.exploration.race_measured import Measured
    from udml_core.numerics.changed_results import Changed
    from udml_core.numerics.second_opinion import Interval, Judge, Opinion, Verdict
    from udml_core.runs import Run

JUDGES = ("efficientnet-lite0", "squeezenet", "pixels")
"""The encoders that judge by default; the run's own does not."""
ADD_JUDGE = ("Name a further encoder or a table of vectors as a judge, such as `udml opinion RUN --judges timm:MODEL`; "
             "models of timm need `pip install timm`.")
"""What to do where every usual judge took part."""
QUESTIONS = {"first result": "first_results", "whole group": "groups"}
"""The attribute of an opinion by its name in words."""
SHOWN = ("difference", "low", "high")
"""What the command line says of an interval."""
RECIPES = ("whiten", "whiten+average:k=5", "whiten+average:k=10,times=2", "whiten+average:k=20,times=2,alpha=3",
           "whiten+rerank", "whiten+diffuse", "average:k=5", "average:k=10,times=2")
"""Refinements of a run's embedding among which the second opinion prefers one."""


class Verdicts(NamedTuple):
    """What the judges together say of an embedding.

    Attributes:
        first: On the first result of a query.
        groups: On the whole group of a query.
    """

    first: Verdict
    groups: Verdict


@dataclass(frozen=True)
class Opinions:
    """What several judges say of a run's embeddings.

    Attributes:
        reference: The frame that the others are compared with.
        opinions: By frame or recipe, and judge, the opinion on the embedding.
        weights: What each judge counts.
        group: Number of results that the judges look at for whole groups.
        counts: By frame or recipe, and judge, how many first results and groups differ and are better; empty where an
            earlier version did not store it.
        recipe: The recipe that refines the reference; empty for none.
        left_out: Why further judges could not judge, in sentences.
        steps: The recipe that refines the judged embedding, where its name does not say it; empty for none.
    """

    reference: str
    opinions: Mapping[str, Mapping[str, Opinion]]
    weights: Mapping[str, float]
    group: int
    counts: Mapping[str, Mapping[str, tuple[Changed, Changed]]] = field(default_factory=dict)
    recipe: str = ""
    left_out: tuple[str, ...] = ()
    steps: str = ""

    @property
    def judges(self) -> tuple[str, ...]:
        """The names of the judges, the one that counts most first."""
        return tuple(sorted(self.weights, key=lambda judge: -self.weights[judge]))

    def intervals(self, compared: str, question: str) -> dict[str, Interval]:
        """Return each judge's interval on an embedding.

        Args:
            compared: The frame or recipe.
            question: A name of `QUESTIONS`.
        """
        return {judge: getattr(self.opinions[compared][judge], QUESTIONS[question]) for judge in self.judges}

    def verdicts(self, compared: str) -> Verdicts:
        """Return what the judges say together of a frame or recipe."""
        return Verdicts(*(measured.said for measured in self.measured(compared)))

    def measured(self, compared: str) -> tuple[Measured, Measured]:
        """Return what all judges measured of a frame or recipe together: of the first result and of the whole group."""
        from udml_core.exploration.jury import combined, counted
        from udml_core.exploration.race_measured import untold

        weights = [self.weights[judge] for judge in self.judges]
        known = self.counts.get(compared, {})
        counts = [counted([known[judge][place] for judge in self.judges], weights) if known else None
                  for place in range(len(QUESTIONS))]
        doubted = {"untold": untold(Recipe.parse(self.recipe), recipe_of(self.steps or compared))}
        first, groups = (combined(list(self.intervals(compared, question).values()), weights, count).model_copy(
            update=doubted) for question, count in zip(QUESTIONS, counts, strict=True))
        return first, groups

    def preferred(self) -> str | None:
        """Return the embedding with the largest gain in whole groups whose first results do not suffer.

        On few images the judges together may not be able to tell that first results suffer, while one already sees it,
        or all see a difference below its standard error. Such embeddings are not preferred. A recipe to begin with is
        no verdict, so a gain that the judges agree on suffices.

        Returns:
            The frame or recipe; None if no group is better.
        """
        fit = [name for name in self.opinions if self.measured(name)[1].agreed == "better" and not self._suffers(name)]
        return max(fit, key=lambda name: self._mean(name, "whole group")[0], default=None)

    def _suffers(self, compared: str) -> bool:
        """Return whether first results are worse as one judge sees it, or lower by more than the standard error."""
        difference, error = self._mean(compared, "first result")
        return difference < -error or any(interval.verdict == "worse" for interval
                                          in self.intervals(compared, "first result").values())

    def _mean(self, compared: str, question: str) -> tuple[float, float]:
        """Return a difference and its standard error, averaged over the judges by their weights."""
        total = sum(self.weights.values()) or 1.0
        intervals = self.intervals(compared, question).items()
        return (sum(self.weights[judge] * interval.difference for judge, interval in intervals) / total,
                sum(self.weights[judge] * interval.error for judge, interval in intervals) / total)


def recipe_of(name: str) -> Recipe:
    """Return the recipe of an embedding that is compared: none of a frame; a stored refinement may have any step."""
    if name.startswith(REFINED):
        return Recipe.parse("average+rerank")
    with suppress(UserError):
        return Recipe.parse(name)
    return Recipe()  # a frame


class SecondOpinion(AnalysisKind):
    """A comparison of embeddings by encoders that took no part in them."""

    name = "opinion"
    title = "Second opinion"
    noun = "second opinion"
    text = "opinion compares embeddings without labels by encoders that took no part in them"
    order = 9
    arrays: ClassVar = {"compared": "text f", "encoders": "text j", "weights": "float j", "group": "int",
                        "values": "float f j 2 3"}
    added: ClassVar = {"counts": "float f j 2 4", "left_out": "text r"}

    scope: Images = "test"
    frames: Frames = ("frozen", "final")
    judges: Judges = JUDGES
    recipes: Annotated[tuple[str, ...], Field(max_length=50)] = ()
    """Refinements of the first frame that are compared with it as well."""

    def check(self) -> None:
        """Reject a single embedding, and recipes that cannot be read."""
        if len(self.frames) + len(self.recipes) < 2:
            raise ValueError(f"a {self.noun} compares embeddings with the first; name at least two frames, got "
                             f"{', '.join(self.frames)}")
        if self.recipes and self.frames[0].startswith(REFINED):
            raise ValueError(f"recipes refine the first frame, which must not be a refinement; got {self.frames[0]}")
        for recipe in self.recipes:
            Recipe.parse(recipe)

    def check_run(self, run: Run) -> None:
        """Reject unknown judges, judges that took part in the run, and raw pixels alone."""
        from udml_core.data.judging import check_judge

        spec = run.spec()
        for judge in self.judges:
            check_judge(judge, spec.encoder.reads_images)
        independent, took_part = self.independent(spec.backbone), encoders_in(spec.backbone)
        left = next((judge for judge in JUDGES if judge not in (*took_part, *WEAK)), "")
        fix = f"Add an encoder: `udml opinion RUN --judges {','.join((*independent, left))}`." if left else ADD_JUDGE
        if not independent:
            raise UserError(f"{spec.backbone} took part in this run and cannot judge it. {fix}")
        if set(independent) <= set(WEAK):
            others = "" if left else f"{listed(sorted(took_part))} took part in this run, and "
            raise UserError(f"{others}{', '.join(independent)} cannot judge alone: pixels see color and place, hardly "
                            f"content. {fix}")

    def independent(self, backbone: str) -> tuple[str, ...]:
        """Return the judges without a run's own backbone, whose students its embeddings are."""
        return tuple(judge for judge in self.judges if judge not in encoders_in(backbone))

    def compute(self, material: Material) -> Arrays:
        """Let each judge compare every embedding with the first."""
        from udml_core.numerics.changed_groups import changed_both
        from udml_core.numerics.second_opinion import IMAGES, QUERIES, judge_rankings

        indices = material.indices(self.scope)
        indices = indices[evenly_spaced(len(indices), IMAGES)]
        queries = evenly_spaced(len(indices), QUERIES)
        judges, left_out = self._judges(material, indices)
        depth = min(judge.group for judge in judges.values())
        reference, *others = [self._ranking(material, name, indices, queries, depth)
                              for name in (*self.frames, *self.recipes)]
        counts, values = list[Any](), list[Any]()
        for number, other in enumerate(others):
            material.report(number / len(others), "comparing the results")
            changed = [changed_both(judge, queries, reference, other) for judge in judges.values()]
            opinions = [judge_rankings(judge, queries, reference, other) for judge in judges.values()]
            counts.append([[(of.share, of.better, of.low, of.high) for of in both] for both in changed])
            values.append([[(of.before, of.after, of.error) for of in (opinion.first_results, opinion.groups)]
                           for opinion in opinions])
        return {"compared": np.array([*self.frames[1:], *self.recipes]), "encoders": np.array(list(judges)),
                "weights": np.array([judge.weight for judge in judges.values()]), "group": np.array(depth),
                "values": np.array(values), "counts": np.array(counts), "left_out": np.array(left_out, dtype=np.str_)}

    def _judges(self, material: Material, indices: Integers) -> tuple[dict[str, Judge], tuple[str, ...]]:
        """Prepare the judges of some images, and say why others were left out.

        Raises:
            UserError: No judge is left: the features of each are, or almost are, a judged frame or its encoder's.
        """
        from udml_core.data.judging import encoder_title, kin_reasons
        from udml_core.data.speed import measured_step
        from udml_core.numerics.second_opinion import VIEWED, Judge

        seen, judges, reasons = evenly_spaced(len(indices), VIEWED), dict[str, Judge](), dict[str, str]()
        frames = [name for name in dict.fromkeys(("frozen", *self.frames)) if not name.startswith(REFINED)]
        judged = [*(material.vectors(name, indices) for name in frames),
                  *(part[indices] for part in material.part_features())]
        for name in self.independent(material.backbone):
            features = material.judge_features(name)[indices]
            kin = kin_reasons({name: features}, material.backbone, judged)
            reasons |= kin
            if kin:
                continue
            views = material.judge_views(name, indices[seen])
            with measured_step(material.report, f"judge {encoder_title(name)}: comparing all images", f"judge {name}",
                               len(indices)):
                judges[name] = Judge.of(features, None if views is None else (seen, views))
        if set(judges) <= set(WEAK):
            raise UserError(f"Cannot tell: no judge is left. {' '.join(reasons.values())} {ADD_JUDGE}")
        return judges, tuple(reasons.values())

    def _ranking(self, material: Material, name: str, indices: Integers, queries: Integers,
                 depth: int) -> Integers:
        """Return the rows (q, k) nearest to queries in a frame, or in the first frame refined by a recipe.

        A stored refinement may have fewer neighbors, so it is computed again.
        """
        from udml_core.numerics.neighbors import nearest

        if name not in self.recipes and not name.startswith(REFINED):
            return nearest(material.vectors(name, indices), depth, own=queries)[1]
        recipe, frame = (name, self.frames[0]) if name in self.recipes else material.refinement(name)
        refiner = fit_refiner(material, Recipe.parse(recipe), frame, indices, self.scope)
        ranking: Integers = refiner.neighbors(depth).indices[queries]
        return ranking

    def result(self, arrays: Arrays) -> Opinions:
        """Return the opinions by frame and judge."""
        from udml_core.numerics.changed_results import Changed
        from udml_core.numerics.second_opinion import Interval, Opinion

        frames, judges = arrays["compared"].tolist(), arrays["encoders"].tolist()

        def read(name: str, part: type, whole: Callable[..., Any]) -> dict[str, dict[str, Any]]:
            return {frame: {judge: whole(*(part(*map(float, row)) for row in rows))
                            for judge, rows in zip(judges, of_frame, strict=True)}
                    for frame, of_frame in zip(frames, arrays[name], strict=True)}

        counts = read("counts", Changed, lambda *pair: pair) if "counts" in arrays else {}
        return Opinions(self.frames[0], read("values", Interval, Opinion),
                        dict(zip(judges, arrays["weights"].tolist(), strict=True)), int(arrays["group"]), counts,
                        left_out=tuple(arrays["left_out"].tolist()) if "left_out" in arrays else ())

    def findings(self, read: Callable[[], Any]) -> dict[str, Any]:
        """Return the verdicts, and each judge's differences with their intervals."""
        result: Opinions = read()
        return {"reference": result.reference, "weights": dict(result.weights), "left out": list(result.left_out),
                "verdicts": {name: dict(zip(QUESTIONS, result.verdicts(name), strict=True))
                             for name in result.opinions},
                "opinions": {name: {judge: {question: {value: getattr(getattr(opinion, attribute), value)
                                                       for value in SHOWN}
                                            for question, attribute in QUESTIONS.items()}
                                    for judge, opinion in judges.items()}
                             for name, judges in result.opinions.items()}}

    @staticmethod
    def lines(findings: Mapping[str, Any]) -> list[str]:
        """Return the verdicts, and each judge's interval of each question, in a line."""
        lines = [f"Left out: {reason}" for reason in findings.get("left out", ())]
        for name, judges in findings["opinions"].items():
            lines += [f"{name} against {findings['reference']}, {question}: {verdict}"
                      for question, verdict in findings["verdicts"][name].items()]
            lines += [f"  {judge} (weight {findings['weights'][judge]:.2f}), {question}: {of['difference']:+.4f}, 95 % "
                      f"interval {of['low']:+.4f} to {of['high']:+.4f}"
                      for judge, questions in judges.items() for question, of in questions.items()]
        return lines

