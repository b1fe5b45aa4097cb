"""The verdict on a run without labels: its second opinion, in words.

The standard second opinion compares the embedding that a run keeps with the frozen features; another one compares
refinements with the kept embedding. Both follow a run in the background.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

from udml_core.base.arrays import Array, Integers
from udml_core.base.errors import UserError
from udml_core.base.files import read_array
from udml_core.data.encoder_names import encoders_in, is_several, parts_of
from udml_core.data.encoders import choose_spec
from udml_core.data.judge_names import WEAK
from udml_core.data.judging import encoder_title, judges_words, without_kin
from udml_core.exploration.race_figures import HEADINGS, MEASURES, said_of_measured
from udml_core.exploration.race_measured import FAMILY
from udml_core.numerics.measures import measure_of
from udml_core.runs.analyses import Analysis, AnalysisSpec, analysis_at, list_analyses, plan_analysis
from udml_core.runs.analyses.kinds.advice import Advice
from udml_core.runs.analyses.kinds.opinion import JUDGES, QUESTIONS, RECIPES, Opinions, SecondOpinion, Verdicts
from udml_core.runs.finding import frozen_runs
from udml_core.runs.search import FROZEN
from udml_core.runs.selection import preferred_epoch
from udml_core.runs.verdict import MEASURED, standing

if TYPE_CHECKING:
    from udml_core.data.dataset import Dataset
    from udml_core.numerics.second_opinion import Verdict
    from udml_core.runs import Run

OF_RUN = plan_analysis(SecondOpinion)
"""The request for the second opinion of a run against the frozen features."""
OF_REFINEMENTS = plan_analysis(SecondOpinion, frames=("final",), recipes=RECIPES)
"""The request for the second opinion of refinements against the run's embedding."""
JUDGE_WORDS = {"pixels": "raw pixels"}
"""The names of judges in sentences; others go by the title of their backbone."""
QUESTION_WORDS = tuple(HEADINGS.values())
INSTALL = ("No encoder that took no part can judge. Name one with `udml opinion RUN --judges timm:MODEL` after "
           "`pip install timm`.")

JUDGED = "Judged without labels"
"""Heading of the judges' verdicts, apart from the measures from labels."""
DECIDES = ("The verdict in the headline decides: it is of all judges together, and counts a difference only if it "
           f"stands out among {FAMILY} comparisons. So one judge's interval may leave out 0 where the verdict tells no "
           "difference, and the other way round.")
"""Which of several intervals to follow."""
TRUST = "Trust the labels: they measure the truth, which judges only estimate."
"""Which figures to follow where labels and judges differ."""

ALL_OF_IT = 0.95
Agreement = Literal["agree", "disagree", "undecided"]


def opinion_of(run: Run, request: AnalysisSpec = OF_RUN) -> Opinions | None:
    """Read a run's finished second opinion; None if there is none, or if its file is damaged."""
    analysis = analysis_at(run, request)
    with suppress(UserError):  # its file is damaged
        return analysis.result_of(SecondOpinion) if analysis.is_done() else None
    return None


def newest_opinion(run: Run) -> Opinions | None:
    """Read the newest finished second opinion of a run against the frozen features, by any judges.

    A user may have named further judges, on the command line.
    """
    analysis = opinion_at(run)
    return opinion_of(run, analysis.spec()) if analysis.is_done() else None


def opinion_at(run: Run) -> Analysis:
    """Return the newest finished second opinion of a run against the frozen features, else the standard one."""
    standard, asked = analysis_at(run, OF_RUN), OF_RUN.build_kind()
    if {folder.name for folder in standard.folder.parent.glob("opinion-*")} <= {OF_RUN.id, OF_REFINEMENTS.id}:
        return standard  # as most runs, of which a table shows many
    finished = (analysis for analysis in list_analyses(run, SecondOpinion) if analysis.is_done())
    return next((analysis for analysis in finished if analysis.spec().build_kind().model_copy(
        update={"judges": JUDGES}) == asked), standard)


def judge_weights(runs: Sequence[Run], names: Collection[str]) -> dict[str, float]:
    """Return what judges count, which their images decide, from whatever has all of them; 1 without it.

    Args:
        runs: Runs of the same images, whose second opinions come before the races on their images.
        names: The judges.
    """
    for weights in _stored_weights(runs):
        if set(names) <= set(weights):
            return {name: weights[name] for name in names}
    return dict.fromkeys(names, 1.0)


def _stored_weights(runs: Sequence[Run]) -> Iterator[Mapping[str, float]]:
    """Yield the weights of judges in the second opinions of runs, then in the races on their images."""
    yield from (opinions.weights for run in runs for request in (OF_REFINEMENTS, OF_RUN)
                if (opinions := opinion_of(run, request)) is not None)
    for start in frozen_runs(runs[0].root, runs[0].spec().fingerprint):
        for analysis in list_analyses(start, Advice):
            if analysis.is_done():
                with suppress(UserError):  # its file is damaged
                    yield analysis.result_of(Advice).weights


def stored_features(dataset: Dataset, backbone: str) -> Array | None:
    """Return a judge's features (n, d) of all images; None if they are not stored."""
    from udml_core.data.features import features_path

    path = features_path(dataset, choose_spec(backbone, dataset.native_size, dataset.gray))
    try:
        features = read_array(path, mapped=True) if path.exists() else None
    except UserError:
        return None
    return features if features is not None and len(features) == len(dataset) else None


def stored_parts(dataset: Dataset, backbone: str) -> list[Array]:
    """Return the stored features (n, d) of each of several encoders side by side; none for a single one."""
    parts = [part.backbone for part in parts_of(backbone)] if is_several(backbone) else []
    return [features for part in parts if (features := stored_features(dataset, part)) is not None]


def stored_judges(run: Run, dataset: Dataset, images: Integers, judges: Sequence[str] = JUDGES) -> dict[str, Array]:
    """Return the stored features (m, d) of the judges that may judge a run, by name; none if the rest cannot alone.

    Args:
        run: The run.
        dataset: Its data set.
        images: Indices (m,) of the judged images.
        judges: The judges to choose from.

    Raises:
        UserError: The stored embedding is damaged.
    """
    backbone = run.spec().backbone
    stored = {judge: features[images] for judge in judges if judge not in encoders_in(backbone)
              and (features := stored_features(dataset, judge)) is not None}
    if set(stored) <= set(WEAK):
        return {}
    own = dataset.vectors if dataset.vectors is not None else stored_features(dataset, backbone)
    judged = [of[images] for of in (own, *stored_parts(dataset, backbone), run.embeddings("final")) if of is not None]
    return without_kin(stored, backbone, judged)


def judge_words(name: str) -> str:
    """Return the name of a judge in a sentence, such as SqueezeNet 1.1."""
    return JUDGE_WORDS.get(name) or encoder_title(name)


def opinion_words(opinions: Opinions, compared: str = "final", reference: str = "the plain search") -> str:
    """State the verdicts on an embedding, for how many images they hold, who judged, and against what.

    Args:
        opinions: The second opinion.
        compared: The frame or recipe.
        reference: The embedding that it is compared with, in words.
    """
    said = ". ".join(said_of_measured(*of) for of in zip(
        MEASURES, opinions.verdicts(compared), opinions.measured(compared), strict=True))
    weights = {judge: opinions.weights[judge] for judge in opinions.judges}
    return f"{said}. Compared with {reference}, without labels, by {judges_words(weights, 'in this run')}."


def agreement(verdicts: Verdicts, evaluation: Mapping[str, Mapping[str, Any]] | None) -> dict[str, Agreement]:
    """Compare verdicts with measures from labels.

    Args:
        verdicts: The verdicts on a run's embedding.
        evaluation: The run's evaluation.

    Returns:
        By measure, whether the verdict and the sign of the difference to frozen features agree. A question that the
        judges cannot tell, or a difference of 0, is undecided. Measures without labels are missing.
    """
    compared: dict[str, Agreement] = {}
    for measure, verdict in zip(MEASURED, verdicts, strict=True):
        difference = standing(evaluation, measure).over_frozen
        if difference is not None:
            compared[measure] = _compare(verdict, difference)
    return compared


def agreement_words(verdicts: Verdicts, evaluation: Mapping[str, Mapping[str, Any]] | None) -> str:
    """State in a sentence whether measures from labels agree with the verdicts; empty where that is undecided."""
    compared = agreement(verdicts, evaluation)
    opposed = [_change_words(measure, evaluation) for measure, of in compared.items() if of == "disagree"]
    if opposed:
        return f"The labels say otherwise: {' and '.join(opposed)}. {TRUST}"
    agreeing = [measure for measure, of in compared.items() if of == "agree"]
    decided = [measure for measure, verdict in zip(MEASURED, verdicts, strict=True) if verdict != "cannot tell"]
    if not agreeing:
        return ""
    names = " and ".join(measure_of(measure).name for measure in agreeing)
    return "The labels agree." if agreeing == decided else f"The labels agree on {names}."


def _change_words(measure: str, evaluation: Mapping[str, Mapping[str, Any]] | None) -> str:
    """Return how a measure differs from that of the frozen features, such as R@1 falls by 1.2 points."""
    difference = standing(evaluation, measure).over_frozen or 0.0
    points = "point" if abs(difference) == 1 else "points"
    return f"{measure_of(measure).name} {'rises' if difference > 0 else 'falls'} by {abs(difference):.1f} {points}"


def kept_words(run: Run) -> str:
    """State which epoch judges kept, and why; empty for a run whose epoch judges do not choose."""
    if run.spec().select != "judges":
        return ""
    rows = {int(row["epoch"]): row for row in run.metrics()[0]}
    kept, last = preferred_epoch(rows), max(rows, default=0)
    if kept is None:
        return (f"Kept: epoch {last}, the last. No encoder that took no part had looked at these images yet, so no "
                "judge could choose.")
    if kept == last:
        return f"Kept: epoch {last}, the last; no earlier one is surely better, as a judge without labels sees it."
    name = f"epoch {kept} of {last}" if kept else "the model before training"
    return (f"Kept: {name}. A judge without labels finds epoch {last} surely worse in whole groups. To keep the last "
            "epoch, train with “Keep the epoch: last”.")


NO_GAIN = "No gain by training: to a judge, the start before the first epoch was as good."
"""What is said of a run whose training itself added nothing."""


def adds_nothing(run: Run) -> bool:
    """Return whether training itself added nothing: the start is kept, or a judge finds it as good in whole groups."""
    rows = {int(row["epoch"]): row.get("second opinion") for row in run.metrics()[0]}
    kept_epoch = run.kept_epoch()
    if not kept_epoch:
        return len(rows) > 1
    start, kept = rows.get(0), rows.get(kept_epoch)
    return start is not None and kept is not None and kept <= max(start, 0.0)


def start_words(run: Run) -> str:
    """State how much of the gain in whole groups training itself made; empty without the curve of a judge."""
    if adds_nothing(run):
        return NO_GAIN
    rows = {int(row["epoch"]): row.get("second opinion") for row in run.metrics()[0]}
    start, kept = rows.get(0), rows.get(run.kept_epoch())
    if start is None or kept is None or not run.kept_epoch():
        return ""
    share = min(1.0, (kept - start) / kept)
    return ("Training itself made the whole gain in whole groups." if share > ALL_OF_IT else
            f"Training itself made about {100 * share:.0f} % of the gain in whole groups. The rest was there before.")


def obstacle(run: Run) -> str:
    """Return why a run cannot have a second opinion; empty if it can."""
    if run.spec().method == FROZEN:
        return "A second opinion compares with the plain search, which is this run's own embedding."
    try:
        OF_RUN.build_kind().check_run(run)
    except UserError as error:
        return str(error)
    return ""


def opinion_lines(run: Run, note: str = "") -> list[str]:
    """State a run's second opinion in text: the verdicts, the judges' intervals, and whether labels agree.

    Args:
        run: The run.
        note: Sentences that follow the verdicts.

    Returns:
        Lines; none if the run has no second opinion.
    """
    opinions = newest_opinion(run)
    if opinions is None:
        return []
    said = agreement_words(opinions.verdicts("final"), run.evaluation())
    return [" ".join(filter(None, (opinion_words(opinions), note, said))), *(
        f"{question}, {judge_words(judge)} (weight {opinions.weights[judge]:.2f}): {of.difference:+.4f}, 95 % interval "
        f"{of.low:+.4f} to {of.high:+.4f}"
        for name, question in zip(QUESTIONS, QUESTION_WORDS, strict=True)
        for judge, of in opinions.intervals("final", name).items()), *(
        f"Left out: {reason}" for reason in opinions.left_out)]


def _compare(verdict: Verdict, difference: float) -> Agreement:
    if verdict == "cannot tell" or not difference:
        return "undecided"
    return "agree" if (verdict == "better") == (difference > 0) else "disagree"
