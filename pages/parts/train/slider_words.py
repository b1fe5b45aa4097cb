"""What the settings that Lab shows at once do, in plain words below each; the paper's terms are in the tooltips."""

from __future__ import annotations

EFFECTS = {
    "alpha": "Smaller: more triplets are corrected, so groups move farther apart.",
    "averaged": "More: targets vary less; too many mix different things.",
    "batch": "More pairs a step: fewer, steadier steps.",
    "bias": "Similar pairs end nearer than this, dissimilar pairs farther apart.",
    "centered": "On: compares how images differ from the average image.",
    "classes": "More: more images to tell apart, and a longer run.",
    "clusters": "More: smaller groups.",
    "delta": "Larger: different images are pushed farther apart.",
    "dimension": "Numbers that describe an image. Fewer: faster search, less detail.",
    "epochs": "More: longer training.",
    "epsilon": "Smaller: fewer, larger groups. Larger: more, smaller groups.",
    "eta": "Larger: different images are pushed apart more strongly.",
    "flat": "Larger: neighborhoods extend in more directions and accept more images.",
    "form": "How the images of a class are combined.",
    "group": "Larger: more neighbors of an image in each step.",
    "iterations": "More: longer training.",
    "kept_views": "More changed copies of each image: slower.",
    "levels": "More: more levels of groups within groups.",
    "margin": "Larger: different images must lie farther away.",
    "n_neighbors": "More: each image is compared with more similar images.",
    "negatives": "More: images to push away come from farther around.",
    "neighbors": "More: larger neighborhoods, which mix more classes.",
    "noise": "More: each image is compared with more others; slower.",
    "per_anchor": "More: more comparisons in an epoch; slower.",
    "positives": "More: images to pull nearer come from farther around.",
    "projected": "Larger: a finer comparison while training; slower.",
    "projection": "A layer that serves training only, behind the embedding.",
    "reduced": "Fewer: faster, with less detail of the features.",
    "redundancy": "Larger: the numbers of an embedding repeat each other less.",
    "round_epochs": "More: groups are formed again less often.",
    "rounds": "More: neighborhoods are trusted in smaller steps.",
    "shrinkage": "Larger: the features change less.",
    "sigma": "Larger: more distant images still count as similar.",
    "step": "Larger: levels of groups differ more in size.",
    "temperature": "Smaller: only the most similar images count.",
    "threshold": "Larger: stricter, so fewer images join a neighborhood.",
    "times": "More: targets also come from neighbors of neighbors; too many mix different things.",
    "trains": "The head alone is the fastest; all layers change the most.",
    "unit_length": "On: the direction of an embedding counts, not its length.",
    "weight_edges": "Larger: linked images are pulled together more strongly.",
}
"""The effect of a field, by its name."""
OF_METHOD = {
    ("pslr", "n_neighbors"): "More: more images count as neighbors, some of other classes.",
    ("whiten", "n_neighbors"): "More: more pairs of neighbors, some of other classes.",
    ("seraph", "n_neighbors"): "More: more pairs without a label.",
    ("seraph", "threshold"): "Larger: more pairs count as similar.",
    ("rotnet", "temperature"): "Smaller: surer guesses of the turn.",
}
"""The effect of a field that means something else in a method, by the names of both."""


def effect_of(method: str, field: str) -> str:
    """Return what a setting does, in a sentence or two; empty for a setting without such words."""
    return OF_METHOD.get((method, field)) or EFFECTS.get(field, "")
