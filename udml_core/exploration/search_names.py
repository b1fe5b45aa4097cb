"""The names of searches in sentences: one plain name for each kind of search, and its recipe once."""

from __future__ import annotations

import re
from collections.abc import Iterable

from udml_core.data.encoder_names import encoders_in
from udml_core.exploration.race import FROZEN, Race, Setup
from udml_core.exploration.race_figures import setup_words

NUMBERS = {2: "two", 3: "three", 4: "four"}


def plain_name(setup: Setup, start: Setup) -> str:
    """Return what a search is called in sentences, such as "the refined search"; readers need no recipe to follow it.

    Args:
        setup: The search.
        start: The plain search of the same race.
    """
    if setup.method != FROZEN:
        return "the trained search"
    if setup.backbone != start.backbone:
        count = len(encoders_in(setup.backbone))
        return f"the search with {NUMBERS.get(count, count)} networks" if count > 1 else (
            "the search with another network")
    return "the refined search" if setup.recipe else "the plain search"


def named_search(race: Race, setup: Setup) -> str:
    """Return a search by its plain name with its recipe, such as "the refined search (whitening, then averaging)"."""
    return with_recipe(plain_name(setup, race.start), setup_words(race, setup, is_brief=True))


def other_search(race: Race, setup: Setup, subject: Setup) -> str:
    """Return the name of a search beside the one that a text is about: "another refined search (…)" of equal kind.

    Args:
        race: The race.
        setup: The search.
        subject: The search that the text is about.
    """
    name = plain_name(setup, race.start)
    if setup == subject or name != plain_name(subject, race.start):
        return named_search(race, setup)
    is_brief = setup_words(race, setup, is_brief=True) != setup_words(race, subject, is_brief=True)
    return with_recipe(f"another {name.removeprefix('the ')}", setup_words(race, setup, is_brief))


def with_recipe(name: str, recipe: str) -> str:
    """Return a name with the recipe behind it; the plain search has none."""
    return name if recipe in ("", name) else f"{name} ({recipe})"


def without_recipe(named: str) -> str:
    """Return the plain name of a search whose recipe stands behind it."""
    return named.partition(" (")[0]


def recipe_once(texts: Iterable[str], named: str) -> list[str]:
    """Return texts in which the recipe stands behind the first mention of a search alone.

    Args:
        texts: The texts in the order in which they are read.
        named: The search with its recipe; see `named_search`. Without a recipe, the texts stay.
    """
    name, sign, recipe = named.partition(" (")
    if not sign:
        return list(texts)
    mention, told, is_named = re.compile(rf"\b([Tt]he {re.escape(name.removeprefix('the '))})(?! \()"), [], False
    for text in texts:
        plain = re.sub(rf"({re.escape(name[1:])}){re.escape(sign + recipe)}", r"\1", text)
        if not is_named and mention.search(plain):
            plain, is_named = mention.sub(lambda found: f"{found[1]}{sign}{recipe}", plain, count=1), True
        told.append(plain)
    return told


def steps_sentence(race: Race, setup: Setup) -> str:
    """Return the steps of a search with their numbers, in a sentence; empty if its recipe tells all."""
    steps = setup_words(race, setup)
    return "" if steps == setup_words(race, setup, is_brief=True) else (
        f"Steps of {plain_name(setup, race.start)}: {steps}.")
