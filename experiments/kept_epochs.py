"""Test the epoch that judges keep without labels: how often it is better than the last epoch, as the classes say.

    python -m experiments.kept_epochs --runs runs/second-opinion --out assets/results/kept-epochs.json

Reads the runs that `experiments.second_opinion` trained without labels, of more than `FEWEST` epochs, and what they
stored of each epoch; nothing is trained. A judge compares every epoch with the frozen features on 1,000 training
images. By the rule of the app the run keeps the last epoch that is not surely worse than the best, the start included.
The truth is MAP@R and R@1 of the kept and of the last epoch, on the same training images, which is the case of a folder
that is trained and searched as a whole, and on 1,000 test images of other classes.

Beside the choice stands how well the judge follows MAP@R over all epochs of a run: the rank correlation, the share of
epochs that differ from the start by more than `LARGE` points whose difference has the judge's sign, and what the
epoch that is judged best loses against the truly best.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from experiments.benchmark_rows import benchmark_rows
from experiments.campaign import first_images
from experiments.recording import provenance, record_parser, write_record
from experiments.second_opinion import JUDGES, LARGE, SEED, tracks
from udml_core.base.arrays import Array
from udml_core.data import catalog
from udml_core.data.encoders import Encoder, EncoderSpec, choose_spec
from udml_core.data.features import features_of
from udml_core.data.splits import fixed_sample
from udml_core.methods import find_method
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.refinement.linear import unit_rows
from udml_core.numerics.second_opinion import Judge
from udml_core.runs import Run, Spec
from udml_core.runs.baselines import JUDGED, judged_images, sample_measures
from udml_core.runs.sample_opinion import SampleJudge
from udml_core.runs.selection import preferred_epoch

SMALLEST = 96
"""Smallest side of an image that a judge sees."""
FEWEST = 5
"""Smallest number of epochs of a run that has a choice."""
SIDES = {"training images": "at hand", "test images": "other classes"}
"""The images on which an epoch is measured, and what they stand for."""
HELD_OUT = ("cifar10", "birds100")
"""Data sets that were measured after the rule was chosen."""
CURVES = {"map@r": "sample map@r", "recall@1": "sample recall@1"}


def main() -> None:
    parser = record_parser(__doc__)
    parser.add_argument("--runs", type=Path, default=Path("runs/second-opinion"), help="folder of the runs")
    options = parser.parse_args()
    found, runs = [Run(path.parent) for path in sorted(options.runs.glob("*/spec.json"))], {}
    for name, track in {track.dataset: track for track in tracks()}.items():
        with first_images(next(iter(benchmark_rows(track))), options.runs):
            for run in found:
                spec = run.spec()
                if spec.dataset == name and is_chosen(run) and (epochs := measured(run)) is not None:
                    runs[key_of(spec)] = epochs
                    print(list(runs)[-1], flush=True)
    record = contents(runs)
    write_record(options.out, provenance("kept_epochs") | record | {"runs": runs})
    print(record["summary"], record["agreement"])


def contents(runs: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """Return what the record says of its runs: tables by data set, and sums."""
    return {"datasets": {f"Kept instead of the last epoch, {side}": {"rows": table(runs, side)} for side in SIDES}
            | {f"The judge over all epochs, {side}": {"rows": {name: agreement(of, side)
                                                               for name, of in by_dataset(runs).items()}}
               for side in SIDES},
            "summary": {side: summarize(runs.values(), side) for side in SIDES},
            "agreement": {side: agreement(runs.values(), side) for side in SIDES}}


def key_of(spec: Spec) -> str:
    """Return the name of a run in the record: data set, backbone and method, and its seed if that is not 0."""
    title = f"{spec.dataset}, {spec.backbone}: {find_method(spec.method).card.title}"
    return f"{title}{SEED}{spec.seed}" if spec.seed else title


def is_chosen(run: Run) -> bool:
    """Return whether a run is done, was trained without labels and has epochs to choose from."""
    return run.stored_status().state == "done" and (
        find_method(run.spec().method).card.supervision == "none" and len(run.epoch_numbers()) > FEWEST)


@cache
def _seated(dataset: str, encoder: EncoderSpec, images: bytes) -> SampleJudge:
    """Return the judge of some images of a data set, which sees them in the size of the run, as in the record."""
    loaded, rows = catalog.load(dataset), np.frombuffer(images, np.int64)
    of_judge = choose_spec(JUDGES[encoder.backbone][0], loaded.native_size, loaded.gray,
                           size=max(SMALLEST, encoder.size))
    judge = Judge.of(np.asarray(features_of(loaded, Encoder(of_judge))[rows]))
    frozen = unit_rows(np.asarray(features_of(loaded, Encoder(encoder))[rows]))
    return SampleJudge(judge, nearest(frozen, judge.group, own=np.arange(len(rows)))[1])


def measured(run: Run) -> list[dict[str, Any]] | None:
    """Return what a judge and the classes say of each epoch of a run; None if it stored no training images."""
    spec, dataset = run.spec(), catalog.load(run.spec().dataset)
    halves = spec.halves(dataset)
    trained, sample = fixed_sample(halves.train, JUDGED), run.sample_indices()
    judge, test = _seated(spec.dataset, spec.encoder, trained.tobytes()), judged_images(sample, halves.test)
    assert dataset.labels is not None, "the data sets of the record have classes"
    epochs = []
    for number in run.epoch_numbers():
        of_trained, of_test = run.epoch_trained(number), run.epoch_sample(number)[np.isin(sample, test)]
        if of_trained is None:
            return None
        seen = judge.differences(of_trained)
        epochs.append({"epoch": number, **{name: round(seen[name], 6) for name in (
            "second opinion", "second opinion error")}, "training images": truth(of_trained, dataset.labels[trained]),
            "test images": truth(of_test, dataset.labels[test])})
    return epochs


def truth(embedding: Array, labels: Array) -> dict[str, float]:
    """Return MAP@R and R@1 in percent."""
    measures = sample_measures(embedding, labels)
    return {name: round(100 * measures[curve], 2) for name, curve in CURVES.items()}


def choice(epochs: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """Return the positions of the epoch that the rule of the app keeps, and of the last."""
    kept = preferred_epoch({row["epoch"]: row for row in epochs})
    return next(place for place, row in enumerate(epochs) if row["epoch"] == kept), len(epochs) - 1


def gain(epochs: Sequence[Mapping[str, Any]], side: str, measure: str) -> float:
    """Return by how many points the kept epoch is better than the last."""
    kept, last = choice(epochs)
    return round(epochs[kept][side][measure] - epochs[last][side][measure], 2)


def summarize(runs: Any, side: str) -> dict[str, Any]:
    """Return how often another epoch than the last is kept, how often it is truly better, and the largest losses."""
    known = list(runs)
    changed = [epochs for epochs in known if len(set(choice(epochs))) > 1]
    summary: dict[str, Any] = {"runs": len(known), "changed": len(changed),
                               "start kept": sum(choice(epochs)[0] == 0 for epochs in known)}
    for measure in CURVES:
        gains = [gain(epochs, side, measure) for epochs in changed]
        over_start = [[epochs[place][side][measure] - epochs[0][side][measure] for place in choice(epochs)]
                      for epochs in known]
        summary[measure] = {
            "better": sum(value > 0 for value in gains), "worse": sum(value < 0 for value in gains),
            "mean gain": round(float(np.sum(gains)) / len(known), 2),
            "worst against the start": [round(min(values), 2) for values in zip(*over_start, strict=True)]}
    return summary


def agreement(runs: Iterable[Sequence[Mapping[str, Any]]], side: str) -> dict[str, float]:
    """Return how well the judge follows MAP@R over the epochs of runs.

    Returns:
        Runs; the median over runs of the rank correlation; the epochs that differ from the start by more than `LARGE`
        points, and how many have the sign of the judge; the mean and the largest loss of the epoch that is judged best.
    """
    correlations, losses, large, right = [], [], 0, 0
    for epochs in runs:
        judged, true = np.array([(row["second opinion"], row[side]["map@r"]) for row in epochs]).T
        if len(np.unique(judged)) > 1 < len(np.unique(true)):
            correlations.append(float(spearmanr(judged, true).statistic))
        is_large = np.abs(true - true[0]) > LARGE
        large += int(is_large.sum())
        right += int((np.sign(judged - judged[0]) == np.sign(true - true[0]))[is_large].sum())
        losses.append(float(true.max() - true[judged.argmax()]))
    return {"runs": len(losses), "median correlation": round(float(np.median(correlations)), 2),
            "epochs beyond 2 points": large, "same sign": right, "mean regret": round(float(np.mean(losses)), 2),
            "largest regret": round(max(losses), 2)}


def agreement_words(record: Mapping[str, Any]) -> str:
    """Return what the record says of the judge over all epochs."""
    hand, other = (record["agreement"][side] for side in SIDES)
    rows = record["datasets"][f"The judge over all epochs, {next(iter(SIDES))}"]["rows"].values()
    least, most = (pick(row["median correlation"] for row in rows) for pick in (min, max))
    return (f"Over all epochs of the same runs, on the trained images, the judge has the sign of the truth in "
            f"{hand['same sign']} of the {hand['epochs beyond 2 points']} epochs whose MAP@R differs from the start by "
            f"more than {LARGE:g} points; the epoch that it likes best loses {hand['mean regret']:.2f} points on "
            f"average against the truly best, and {hand['largest regret']:.1f} at most. Its rank correlation with "
            f"MAP@R within a run is {least:.2f} to {most:.2f} by data set, and low where epochs hardly differ. On "
            f"images of other classes {other['same sign']} of {other['epochs beyond 2 points']} have the sign of the "
            f"truth.")


def kept_words(record: Mapping[str, Any]) -> str:
    """Return what the record says, as the documents state it."""
    hand = record["summary"][next(iter(SIDES))]
    count = len({name.split(",")[0] for name in record["runs"]})
    kept, last = (-worst for worst in hand["map@r"]["worst against the start"])
    chosen = [gain(epochs, next(iter(SIDES)), "map@r") for epochs in record["runs"].values()]
    truly = {side: [f"better in {of[measure]['better']} and worse in {of[measure]['worse']}" for measure in CURVES]
             for side, of in record["summary"].items()}
    at_hand, elsewhere = (truly[side] for side in SIDES)
    return (f"Of {hand['runs']} runs without labels on {count} data sets, {hand['changed']} kept another epoch than "
            f"the last, {hand['start kept']} of them the model before training. On the trained images, which such a "
            f"run searches, MAP@R of the kept epoch was {at_hand[0]} of these, R@1 {at_hand[1]}; a choice gains up to "
            f"{max(chosen):.1f} points of MAP@R and loses up to {-min(chosen):.1f}, and the largest loss against the "
            f"start falls from {last:.1f} to {kept:.1f}. On images of other classes, MAP@R was "
            f"{elsewhere[0]}, R@1 {elsewhere[1]}: no better than chance, so there it is not the default.")


def held_out_words(record: Mapping[str, Any]) -> str:
    """Return what the record says of data sets that were measured after the rule was chosen."""
    held_out = [epochs for name, epochs in record["runs"].items() if name.startswith(HELD_OUT)]
    of = summarize(held_out, next(iter(SIDES)))
    return (f"On CIFAR-10 and birds, which were measured after the rule was chosen, {of['changed']} of {of['runs']} "
            f"runs keep another epoch: {of['map@r']['better']} gain and {of['map@r']['worse']} lose MAP@R, "
            f"{of['map@r']['mean gain']:+.2f} points on average over all runs.")


def by_dataset(runs: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, list[Sequence[Mapping[str, Any]]]]:
    """Return the runs of each data set and backbone."""
    groups = defaultdict(list)
    for name, epochs in runs.items():
        groups[name.split(":")[0]].append(epochs)
    return groups


def table(runs: Mapping[str, Sequence[Mapping[str, Any]]], side: str) -> dict[str, dict[str, float]]:
    """Return a row for each data set: how often another epoch is kept and truly better."""
    rows = {}
    for name, of in by_dataset(runs).items():
        summary = summarize(of, side)
        rows[name] = {"runs": summary["runs"], "another epoch kept": summary["changed"]} | {
            f"{measure} {word}": summary[measure][word] for measure in CURVES for word in ("better", "worse")}
    return rows


if __name__ == "__main__":
    main()
