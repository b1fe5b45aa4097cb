"""What the names in a race mean, in a few words for readers who have read no paper."""

from __future__ import annotations

from collections.abc import Mapping

from udml_core.exploration.race import FROZEN, Race, Setup
from udml_core.exploration.race_running import METHODS

PLAIN: Mapping[str, str] = {
    FROZEN: "the pretrained network as it is",
    "views": "looks at each image whole, mirrored and cropped",
    "whiten": "pays less attention to what varies among look-alikes, such as the background",
    "average": "moves each image toward the images that resemble it",
    "rerank": "prefers images that also find the query",
    "diffuse": "follows chains of similar images",
    "deepcluster": "trained to sort the images into groups that it finds itself",
    "plm": "trained to bring chains of similar images together",
    "exemplar": "trained to recognize changed copies of an image",
    "distill": "trained to search in one step as well as with several"}
"""A phrase for each step of a recipe and each method that a race tries, by its name."""
ANOTHER = "another pretrained network"
"""The phrase for an encoder that a race tries in place of its own."""


def plain_words(race: Race, setup: Setup) -> dict[str, str]:
    """Return a phrase for each part of a search by the part's name: encoder, method, and steps in their order.

    Args:
        race: The race, which knows titles and the encoder of the start.
        setup: The search; of frozen features without steps the phrase says what these are.
    """
    words = {}
    if setup.backbone != race.start.backbone:
        words[race.titles.get(setup.backbone, setup.backbone)] = ANOTHER
    if setup.method in METHODS:
        words[race.titles.get(setup.method, setup.method)] = PLAIN[setup.method]
    words |= {step.title: PLAIN[step.name] for step in setup.parsed.steps if step.name in PLAIN}
    return words or {"Plain search": PLAIN[FROZEN]}


def plain_line(race: Race, setup: Setup) -> str:
    """Return what a search does in a line, such as "Re-ranking: prefers images that also find the query"."""
    return " · ".join(f"{name}: {words}" for name, words in plain_words(race, setup).items())


def new_words(race: Race) -> dict[Setup, str]:
    """Return, for each judged search of a race in its order, the phrases for parts that no search before it had.

    A list of candidates that shows these phrases explains each name once. Searches without a new part have no phrase.
    """
    known, words = set[str](), dict[Setup, str]()
    for outcome in race.outcomes:
        if outcome.against_start is not None:
            parts = plain_words(race, outcome.setup)
            words[outcome.setup] = "; ".join(phrase for name, phrase in parts.items() if name not in known)
            known |= parts.keys()
    return words


def new_image_words(refines_at_hand: bool) -> str:
    """Return what a search means for new images, such as own photographs as a query; the same words on every page.

    Args:
        refines_at_hand: Whether it refines the images at hand with each other.
    """
    return ("you can search with a new image at once; images that you add are found after the next preparation"
            if refines_at_hand else "a new image is searched in the same way")
