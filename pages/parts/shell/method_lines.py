"""What each method does, in a few plain words: on its card and beside its name in a chart."""

from __future__ import annotations

from udml_core.methods import Method

LINES = {
    "rpml": "Gathers dense groups of similar images", "srpml": "RPML in small batches; trains the network too",
    "plm": "Finds similar images by chains of neighbors", "ssdml": "Spreads a few labels to similar images",
    "lrml": "Pulls classes together, keeps neighbors", "seraph": "Makes each pair clearly similar or different",
    "isdml": "Like LRML, for sparse regions too", "apllr": "Spreads labels, then adjusts distances to them",
    "apit": "Least change that agrees with the labels", "triplet": "Same class nearer than another class",
    "angular": "Triangles of two classes, by their angle", "nml": "Compares images with learned prototypes",
    "ml": "Weights the features by similar pairs", "kml": "Compares with every training image",
    "nca": "Neighbors should share the class", "lmnn": "A margin around neighbors of the same class",
    "pslr": "Two views of an image, and its neighbors", "isif": "Two views together, other images apart",
    "nce": "Each image is a class of its own", "exemplar": "Many changed copies of single images",
    "deepcluster": "Sorts images into clusters, trains, repeats", "rotnet": "Guesses by how much an image was turned",
    "and": "Pairs each image with its nearest image", "mom": "Walks along neighbors to find hard pairs",
    "stml": "A slow copy of the model teaches it", "uhml": "Small groups inside larger groups",
    "simclr": "Two views together, the batch apart", "supcon": "Views of a class together, others apart",
    "barlow": "Two views get the same description", "distill": "Trains on a search refined by slow steps",
    "whiten": "Weakens what differs in very similar images", "pca": "Keeps the directions of largest difference",
    "frozen": "Changes nothing: the level to beat",
}
"""What each method does, in a few words."""


def line_of(method: type[Method]) -> str:
    """Return what a method does in a few words; the first clause of its summary for a method without a line."""
    return LINES.get(method.card.name) or method.card.summary.split(",")[0].split(".")[0]
