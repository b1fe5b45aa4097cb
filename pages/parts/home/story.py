"""What the training on Home did and why, in plain words and in bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from udml_core.base.arrays import Array
from udml_core.methods import Embedder, Head
from udml_core.methods.shared.instance import InstanceMethod
from udml_core.numerics.explanations import Affinities, Clusters, Explanation, LinearNeighborhoods, Pairs, Proxies
from udml_core.numerics.measures import MAIN_MEASURES
from udml_core.results.embedding_words import in_numbers, words_of
from udml_core.runs import Run
from udml_core.runs.baselines import baselines_of
from udml_core.runs.examples import point_of
from udml_core.runs.search import FROZEN, features_words
from udml_core.runs.verdict import side_of

from ..shell.cached import dataset_of, load_split
from ..shell.run_status import method_title

ON_A_SURFACE = "pulls images together that lie on one smooth surface with their neighbors, and pushes others away"
WAYS: dict[type[Explanation], str] = {
    Clusters: "forms clusters of nearby images, then pulls each cluster together and pushes other images away",
    LinearNeighborhoods: ON_A_SURFACE, Proxies: ON_A_SURFACE,
    Affinities: "spreads them to similar images, then pulls images with the same label together",
    Pairs: "pulls the two images of a similar pair together, and pushes the images of a dissimilar pair apart"}
"""What training does, by the record that the run keeps of it."""
WHOLE_GROUP, FIRST_RIGHT = MAIN_MEASURES
BY_INSTANCES = "pulls two random variations of an image together, and pushes all other images away"
BASELINES = {name: words_of(name).sentence for name in ("frozen", "centered pca")}
LABELS = {"none": "no labels", "few": "a few labels", "pairs": "similar and dissimilar pairs",
          "all": "the labels of all training images"}
"""What training receives, by the supervision of the method."""


def tell_story(run: Run, recall: Array | None, lines: Sequence[Mapping[str, Any]]) -> str:
    """Say in plain words what the picture shows, how the method works, and what training changed.

    Args:
        run: The run.
        recall: R@1 of the shown images by epoch in percent; None without classes.
        lines: What `lines_to_beat` returns.
    """
    card = run.spec().build_method().card
    unseen = "" if card.name == FROZEN or load_split(run).name == "all" else " that training never saw"
    colors = "" if recall is None else " Gray images and points have the color of their class."
    seen = f"The map shows images{unseen}.{colors}"
    supervision = (f"{method_title(run)} receives {LABELS[card.supervision]} and {_way(run)}."
                   if card.name != FROZEN else
                   f"Nothing was trained: the images are compared by {run.spec().encoder.frozen_words}.")
    if recall is None:
        return f"{seen} {supervision}"
    known = {line["name"]: line for line in lines} if card.name != FROZEN else {}
    reached = [f"PCA with the same {line['dimensions']} dimensions reaches {line['value']:.1f} %"
               for line in [known.get(BASELINES["centered pca"])] if line]
    features = run.spec().encoder.frozen_words
    reached += [f"{features} with all {line['dimensions']} dimensions reach {line['value']:.1f} %"
                for line in [known.get(BASELINES["frozen"])] if line and line["dimensions"]]
    untrained = f" Without training, {' and '.join(reached)}." if reached else ""
    change = round(recall[-1], 1) - round(recall[0], 1)
    verb = "rises" if change > 0 else "falls"
    values = f"{verb} from **{recall[0]:.1f} %** to **{recall[-1]:.1f} %**" if change else f"is **{recall[-1]:.1f} %**"
    return (f"{seen} {supervision} First result right, the share of images whose nearest image has the same class, "
            f"{values}.{untrained}")


def _way(run: Run) -> str:
    """Return what training does, within a sentence."""
    kinds = {type(record) for epoch in run.epoch_numbers()[:2] for record in run.explanations(epoch)}
    way = next((words for kind, words in WAYS.items() if kind in kinds), "")
    if not way and isinstance(run.spec().build_method(), InstanceMethod):
        way = BY_INSTANCES
    return way or "learns an embedding that should bring images of a class together"


def lines_to_beat(run: Run) -> list[dict[str, Any]]:
    """Return what frozen features and PCA of the run's width reach on the shown images, with names for the bars.

    `value` is R@1 and `map@r` MAP@R, in percent.
    """
    measured = baselines_of(run, dataset_of(run)) or {}
    widths = {"frozen": _feature_width(run), "centered pca": run.embeddings("final").shape[1]}
    return [{"name": name, "dimensions": widths[key], "note": in_numbers(widths[key]),
             "value": 100 * measured[key]["sample recall@1"], "map@r": 100 * measured[key]["sample map@r"]}
            for key, name in BASELINES.items() if key in measured]


def bars_of(run: Run, recall: Array | None, lines: Sequence[Mapping[str, Any]], images: int) -> dict[str, Any] | None:
    """Return the bars beside the query: baselines and the run by epoch, in each measure; None without classes.

    Args:
        run: The run.
        recall: R@1 of the shown images by epoch in percent; None without classes.
        lines: What `lines_to_beat` returns.
        images: Number of the shown images.
    """
    if recall is None:
        return None
    rows = run.metrics()[0]
    whole = [100 * row["sample map@r"] for row in rows if row.get("sample map@r") is not None]
    names = {BASELINES["frozen"]: features_words(run.spec())}
    measures = [{"name": FIRST_RIGHT.plain, "hint": f"{FIRST_RIGHT.help} ({FIRST_RIGHT.name})",
                 "values": recall.tolist(), "rivals": [line["value"] for line in lines]}]
    if len(whole) == len(recall):
        # First, as on Lab and Runs.
        measures.insert(0, {"name": WHOLE_GROUP.plain, "hint": f"{WHOLE_GROUP.help} ({WHOLE_GROUP.name})",
                            "values": whole, "rivals": [line["map@r"] for line in lines]})
    for measure in measures:
        measure["sides"] = [side_of(value, measure["rivals"], images) for value in measure["values"]]
    return {"point": point_of(run), "measures": measures,
            "rivals": [{"name": names.get(line["name"], line["name"]), "note": line["note"]} for line in lines],
            "own": {"name": method_title(run), "note": in_numbers(run.embeddings("final").shape[1])}}


def _feature_width(run: Run) -> int | None:
    """Return the number of the frozen features' dimensions; None if the head does not tell."""
    head = Embedder.load(run.initial_embedder_path).head
    return len(head.weight) if isinstance(head, Head) and head.weight is not None else None
