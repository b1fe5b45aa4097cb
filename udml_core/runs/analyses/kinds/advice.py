"""Advice: a race for the best search that starts from frozen features, judged without labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_args

import numpy as np
from pydantic import Field

from udml_core.base.arrays import Array, Integers, evenly_spaced
from udml_core.base.declaration import Shown
from udml_core.base.errors import UserError, capitalized, duration
from udml_core.base.ticking import ticking
from udml_core.data.dataset import DETAIL, TABLE, WAITING, step_name
from udml_core.data.encoder_names import SIGN, encoders_in
from udml_core.data.judge_names import WEAK
from udml_core.exploration.race import FROZEN, Example, Outcome, Race, Setup
from udml_core.exploration.race_advice import advice_words
from udml_core.exploration.race_measured import Serves
from udml_core.exploration.race_parts import run_with_parts
from udml_core.exploration.race_running import ROUGH, OutOfTimeError, list_ideas, seconds_to_settle, settle
from udml_core.exploration.race_words import caution_words, no_judge_words, outcome_words
from udml_core.numerics.refinement.recipe import Views
from udml_core.runs.analyses.fields import Frames, Judges
from udml_core.runs.analyses.kind import AnalysisKind, Arrays, Material
from udml_core.runs.analyses.kinds.opinion import JUDGES
from udml_core.runs.tasks import TRAINING

if TYPE_CHECKING:
    from udml_core.exploration.jury import Jury
    from udml_core.exploration.race_clock import RaceClock
    from udml_core.numerics.second_opinion import Judge
    from udml_core.runs import Run

ENCODERS = tuple(judge for judge in JUDGES if judge not in WEAK)
"""The backbones that a race tries."""
MOST_OF_TIME = 0.6
"""Share of the remaining time after which views are given up, so that other candidates are tried too; views whose first
seconds show that they take longer are tried after the others."""
LEFT_FOR_CANDIDATES = 0.2
"""Share of a race's time that candidates get in any case: on a slow machine the judges' features take longer than
expected, and a race that judges nothing after them would be useless."""
WAITING_WORDS = f"{WAITING}{DETAIL}another run trains, and this time does not count"
SPENT = "spent"
"""What the line of a candidate holds beside it: seconds of the race until then, with the judges."""
LEAST = 20
"""Smallest number of images in a race."""


class Advice(AnalysisKind):
    """A race for the best search of all images, which starts from the frozen features."""

    name = "advice"
    title = "Best search"
    noun = "search for the best search"
    text = "advice tries refinements, methods and encoders within a time, and keeps what judges find better"
    order = 10
    arrays: ClassVar = {"race": "text"}
    settings = "{budget:g} minutes, {serves}"
    differences: ClassVar = {"budget": "{:g} minutes", "serves": "{}"}

    # Stored, but not a part of the id: a race has no other embedding.
    frames: Annotated[Frames, Field(exclude=True)] = ("frozen",)
    budget: Annotated[float, Field(gt=0, le=1440), Shown(unit="minutes")] = 5.0
    """Time for the judges and all candidates; a fifth of it is left for candidates in any case."""
    serves: Serves = "first"
    """What the search serves: the first results of a query (first), or its whole group (groups)."""
    judges: Judges = JUDGES
    encoders: Annotated[tuple[str, ...], Field(max_length=10)] = ENCODERS
    """Other backbones to try, alone and beside the start's; of the usual backbones only those for which a judge is left
    that took no part."""

    def check_run(self, run: Run) -> None:
        """Reject a run of anything but the frozen features of all images, and unknown judges and encoders."""
        spec = run.spec()
        if (spec.method, spec.split) != (FROZEN, "all"):
            raise UserError(f"Advice starts from the frozen features of all images, and {run.id} is a run of "
                            f"{spec.method} with the split '{spec.split}'. Use `udml advise {spec.dataset}`, which "
                            "makes such a run.")
        self.check_encoders(spec.encoder.reads_images)

    def check_encoders(self, has_images: bool) -> None:
        """Check that all judges and encoders are available.

        Args:
            has_images: Whether the data set has images; a table of vectors is judged by tables only.

        Raises:
            UserError: One is not.
        """
        from udml_core.data.encoders import check_backbone
        from udml_core.data.judging import check_judge

        for judge in self.judges:
            check_judge(judge, has_images)
        for encoder in self.encoders:
            check_backbone(encoder)

    def begin(self, backbone: str, run_id: str) -> Race:
        """Return the race before its first candidate.

        Args:
            backbone: The backbone of the frozen features.
            run_id: The id of their run.
        """
        from udml_core.data.judging import encoder_title
        from udml_core.exploration.race_running import METHODS
        from udml_core.methods import find_method

        titles = {name: encoder_title(name)
                  for name in (backbone, *self.judges, *self.encoders, *self._beside(backbone))}
        titles |= {name: find_method(name).card.title for name in METHODS}
        return Race(serves=self.serves, budget=self.budget, start=Setup(backbone=backbone), run=run_id, titles=titles)

    def compute(self, material: Material) -> Arrays:
        """Run the race; each outcome is stored as soon as it is known."""
        from udml_core.exploration.jury import independent
        from udml_core.numerics.second_opinion import IMAGES

        race, indices = self.begin(material.backbone, material.run_id), material.indices("all")
        check_count(len(indices))
        if independent(self.judges, {material.backbone}):
            race = self._run(material, race, indices[evenly_spaced(len(indices), IMAGES)])
        else:
            race = race.model_copy(update={"reason": no_judge_words(race.titles[material.backbone])})
        return {"race": np.array(race.model_dump_json())}

    def _run(self, material: Material, race: Race, indices: Integers) -> Race:
        """Return the race with the outcomes of all candidates."""
        from udml_core.exploration.judged_track import JudgedTrack
        from udml_core.exploration.jury import Jury
        from udml_core.exploration.race_clock import RaceClock, RaceProgress
        from udml_core.numerics.second_opinion import QUERIES

        clock, seconds = RaceClock(), 60 * self.budget
        lines = list(material.parts())
        earlier = race.with_lines(lines).outcomes
        # The judges of an earlier attempt took time, too; versions before did not store it.
        spent = max([sum(outcome.seconds for outcome in earlier if outcome.state != "not tried"),
                     *(float(line.get(SPENT, 0.0)) for line in lines)])
        began = clock() - spent
        progress = RaceProgress(material.report, lambda: clock() - began, seconds, LEFT_FOR_CANDIDATES)
        material.report = progress
        progress(0.0, "preparing the judges")
        with ticking(progress.tick):  # while a judge or a candidate computes and says nothing
            judges, refused = self._judges(material, race, indices, seconds - spent, clock)
            jury = Jury(judges, evenly_spaced(len(indices), QUERIES))
            seconds = max(seconds, clock() - began + LEFT_FOR_CANDIDATES * seconds)
            progress.begin_candidates(seconds)
            embeddings = _Embeddings(material, race, indices, began + seconds, clock)
            track = JudgedTrack(embeddings, jury, len(indices), clock() - began, partial(_refusal, race), clock,
                                progress.announce)
            ideas = list_ideas(self._rivals(race, jury), race.titles, material.backbone != TABLE)
            known, outcomes = {outcome.setup: outcome for outcome in earlier}, dict[Setup, Outcome]()
            for outcome in run_with_parts(race, ideas, track, seconds, known, material.chosen):
                outcomes[outcome.setup] = outcome
                if known.get(outcome.setup) != outcome:
                    # Else the phase names a candidate that is listed.
                    material.report(0.0, "choosing the next candidate")
                    material.append(outcome.model_dump(mode="json") | {SPENT: clock() - began})
            took = clock() - began
            embeddings.deadline = math.inf  # what was judged is stored, and ranked again in seconds
            race = race.model_copy(update={
                "outcomes": tuple(outcomes.values()), "weights": jury.weights, "group": jury.depth,
                "near": _near(material, indices), "images": len(indices), "seconds": took, "refused": refused})
            progress.announce("the best candidates against each other", left := seconds_to_settle(race), left)
            race, examples = settle(race, track), list[Example]()
            for serves in get_args(Serves):
                with suppress(UserError):  # a run was removed meanwhile
                    if (best := race.serving(serves).best) is not None:
                        examples += track.examples(race.start, best.setup, indices, serves)
            return race.model_copy(update={"examples": tuple(examples)})

    def _judges(self, material: Material, race: Race, indices: Integers, seconds: float,
                clock: RaceClock) -> tuple[dict[str, Judge], tuple[str, ...]]:
        """Return the judges whose features fit into the time, and why others were left out.

        Raises:
            UserError: No judge is left.
        """
        from udml_core.data.judging import kin_reasons
        from udml_core.exploration.jury import independent
        from udml_core.numerics.second_opinion import VIEWED, Judge

        seen, judges, reasons = evenly_spaced(len(indices), VIEWED), dict[str, Judge](), dict[str, str]()
        judged = [material.vectors("final", indices), *(part[indices] for part in material.part_features())]
        for name in self._sitting(material, race, seconds):
            copies, images = f"judge looks at changed copies: {race.titles[name]}", indices[-1] + 1
            material.report(0.0, f"{copies}{_expected_words(*material.feature_time(name))}")
            views = _telling(material, copies, clock, count=len(seen)).judge_views(name, indices[seen])
            features = _telling(material, f"judge looks at the images: {race.titles[name]}", clock,
                                count=images).judge_features(name)[indices]
            kin = kin_reasons({name: features}, material.backbone, judged)
            reasons |= kin
            if kin:
                continue
            material.report(0.0, "a judge compares the photographs' pixels, all at once" if name in WEAK else
                            f"judge compares the images: {race.titles[name]}")
            judges[name] = Judge.of(features, None if views is None else (seen, views))
        if not independent(judges, ()):
            raise UserError(" ".join(reasons.values()))
        return judges, tuple(reasons.values())

    def _rivals(self, race: Race, jury: Jury) -> list[str]:
        """Return the other backbones to try, alone and beside the start's.

        A usual backbone, and one beside the start's, is tried only if a judge is left that took no part.
        """
        start = race.start.backbone
        alone = [encoder for encoder in self.encoders if encoder != start
                 and (encoder not in ENCODERS or not jury.refuses({start, encoder}))]
        return alone + [both for both in self._beside(start) if both not in alone and not jury.refuses({start, both})]

    def _beside(self, backbone: str) -> list[str]:
        """Return the backbone with each other encoder beside it; none for a table, which has no images."""
        if backbone == TABLE:
            return []
        return [f"{backbone}{SIGN}{encoder}" for encoder in self.encoders
                if not encoders_in(encoder) & encoders_in(backbone)]

    def _sitting(self, material: Material, race: Race, seconds: float) -> list[str]:
        """Return the judges whose features fit into the time.

        Raises:
            UserError: None of them can judge alone.
        """
        from udml_core.exploration.jury import independent

        names = [name for name in self.judges if name not in encoders_in(material.backbone)]
        expected = {name: material.feature_time(name)[0] for name in names}
        fitting = list[str]()
        for name in names:
            if sum(expected[other] for other in (*fitting, name)) <= seconds:
                fitting.append(name)
        if not independent(fitting, ()):
            name = min((name for name in names if independent((name,), ())), key=expected.__getitem__)
            raise UserError(f"The features of {race.titles[name]}, which judges, take about "
                            f"{duration(expected[name])}, and the budget is {duration(seconds)}. Allow more "
                            "minutes; computed features are kept.")
        return fitting

    def result(self, arrays: Arrays) -> Race:
        """Return the race with its outcomes."""
        return Race.model_validate_json(str(arrays["race"]))

    def findings(self, read: Callable[[], Any]) -> dict[str, Any]:
        """Return the advice and all candidates."""
        race: Race = read()
        return {"advice": advice_words(race), "caution": caution_words(race),
                "winner": None if race.best is None else race.best.model_dump(),
                "compared with the largest gain": [duel.model_dump() for duel in race.duels],
                "candidates": [outcome.model_dump() | {"sentence": outcome_words(outcome, race)}
                               for outcome in race.outcomes]}

    @staticmethod
    def lines(findings: Mapping[str, Any]) -> list[str]:
        """Return each candidate's sentence, and the advice."""
        return [*(candidate["sentence"] for candidate in findings["candidates"]), findings["advice"],
                *filter(None, [findings.get("caution")])]


def check_count(count: int) -> None:
    """Check that there are enough images for a race.

    Raises:
        UserError: There are not.
    """
    if count < LEAST:
        raise UserError(f"Advice needs at least {LEAST} images, got {count}. Add images.")


class _Embeddings:
    """The embeddings of a race, from the run of the frozen features and from runs that it trains."""

    def __init__(self, material: Material, race: Race, indices: Integers, deadline: float, clock: RaceClock) -> None:
        """Refer to the images.

        Args:
            material: The run of the frozen features.
            race: The race.
            indices: Indices (m,) of the images.
            deadline: The time at which a computation is given up, as `clock` counts.
            clock: The clock of the race.
        """
        self._race, self._indices, self.deadline, self._clock = race, indices, deadline, clock
        self._materials = {(race.start.backbone, race.start.method): material}
        self._own = material
        self._trainings, self._begun = dict[tuple[str, str], tuple[float, bool]](), set[Setup]()

    def rows(self, setup: Setup) -> Array:
        """Return the embeddings (m, d) that the steps of a recipe after its views refine."""
        material, views = self._of(setup), setup.parsed.find("views")
        if isinstance(views, Views):
            now, share = self._clock(), 1.0 if setup in self._begun else MOST_OF_TIME
            self._begun.add(setup)  # which comes again when no other candidate is left
            deadline = now + share * (self.deadline - now)
            telling = _telling(material, Views.title.lower(), self._clock, deadline, len(self._indices))
            return telling.view_vectors("final", views)[self._indices]
        return material.vectors("final", self._indices)

    def parts(self, setup: Setup) -> list[Array]:
        """Return the features (m, e) of each of several encoders side by side; none for a single one."""
        return [features[self._indices] for features in self._of(setup).part_features()]

    def seconds(self, setup: Setup) -> float:
        """Return the expected seconds to compute them; 0 if they are stored."""
        return sum(seconds for seconds, _ in self._times(setup))

    def is_measured(self, setup: Setup) -> bool:
        """Return whether the expected seconds rest on measurements on this machine."""
        return all(is_measured for _, is_measured in self._times(setup))

    def _times(self, setup: Setup) -> list[tuple[float, bool]]:
        """Return the expected times of training, looked up once because it reads all runs, and of views."""
        views, source, times = setup.parsed.find("views"), _source(setup), list[tuple[float, bool]]()
        if source not in self._materials:
            if source not in self._trainings:
                self._trainings[source] = self._own.training_time(setup)
            times.append(self._trainings[source])
        return [*times, self._own.feature_time(setup.backbone, views)] if isinstance(views, Views) else times

    def run_of(self, setup: Setup) -> str:
        """Return the id of the run whose embedding they are."""
        return self._of(setup).run_id

    def _of(self, setup: Setup) -> Material:
        """Return the material of a run, which is trained first unless it is finished."""
        if _source(setup) not in self._materials:
            names = [self._race.titles[name] for name in (setup.method, setup.backbone) if name != FROZEN]
            telling = _telling(self._own, f"training: {', '.join(names)}", self._clock, self.deadline)
            found = telling.of(setup)
            found.report = self._own.report
            self._materials[_source(setup)] = found
        return self._materials[_source(setup)]


def _expected_words(seconds: float, is_measured: bool) -> str:
    """Return how long a judge's features take, to stand behind a step; empty if they are stored."""
    from udml_core.exploration.race_clock import UNKNOWN

    if not seconds:
        return ""
    return f"{DETAIL}{f'about {duration(seconds)} for this judge' if is_measured else UNKNOWN}"


def _source(setup: Setup) -> tuple[str, str]:
    """Return what the run of a search depends on."""
    return setup.backbone, setup.method


def _refusal(race: Race, setup: Setup) -> str:
    """Return why a search cannot be judged, and what to install."""
    return no_judge_words(race.titles[race.start.backbone], race.titles[setup.backbone])


def _near(material: Material, indices: Integers) -> int:
    """Return how many of all images lie near a typical image, as the network of the plain search sees those compared.

    It sees them as a judge does, whitened and averaged; a judge that is a weaker network can count fewer.
    """
    from udml_core.numerics.second_opinion import Judge

    share = len(indices) / len(material.indices("all"))
    return round(Judge.of(material.vectors("final", indices)).group / share)


def _telling(material: Material, words: str, clock: RaceClock, deadline: float = math.inf, count: int = 0) -> Material:
    """Return a material that reports its progress under other words, and gives up at a deadline.

    Args:
        material: The material.
        words: The name of the phase.
        clock: The clock of the race, which stands still while the material waits for the device.
        deadline: The time at which it raises `OutOfTimeError`, as `clock` counts.
        count: Number of images, of which the progress is counted; 0 to keep the detail of the computation.
    """
    from udml_core.exploration.race_clock import TELLING_IMAGES, TELLING_SHARE, Forecast

    telling, report = copy(material), material.report
    forecast = Forecast(clock, TELLING_IMAGES if count else TELLING_SHARE)

    def tell(share: float, step: str) -> None:
        clock.wait(step_name(step) == WAITING)
        left = forecast(share) if count or step_name(step) == TRAINING else None
        if left is not None and left > ROUGH * (deadline - clock()):
            raise OutOfTimeError(f"{capitalized(words)}: it does not fit into the time that is left. Allow more "
                                 "minutes; finished parts are kept.", share, left)
        if clock() > deadline:
            raise OutOfTimeError("The time of the race is up. Allow more minutes; finished parts are kept.",
                                 share if step_name(step) == TRAINING or step.startswith("features") else 0.0)
        part = step_name(step).partition(":")[0]  # a share falls where the next part begins
        detail = f"{round(share * count):,} of {count:,}" if count else step.partition(DETAIL)[2] or (
            f"{part} {100 * share:.0f} %" if share else "")
        report(share, WAITING_WORDS if step_name(step) == WAITING else f"{words}{DETAIL if detail else ''}{detail}")

    telling.report = tell
    return telling
