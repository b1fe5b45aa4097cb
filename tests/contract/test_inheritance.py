"""Rules of the methods' classes: shallow inheritance and no duplicate fields."""

from __future__ import annotations

from abc import ABC

import pytest

from udml_core.base.declaration import Options, describe
from udml_core.methods import METHODS, Method

every_method = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.card.name)


def lineage(method: type[Method]) -> list[type[Method]]:
    """Return the class and its bases below `Method`, the most derived first."""
    return [part for part in method.__mro__ if issubclass(part, Method) and part is not Method]


def mixins(method: type[Method]) -> list[type[Options]]:
    """Return the bases that are no methods: fields, and what follows from them alone."""
    return [part for part in method.__mro__ if issubclass(part, Options) and not issubclass(part, Method)
            and part is not Options]


@every_method
def test_a_method_has_at_most_two_levels_of_inheritance(method: type[Method]) -> None:
    assert len(lineage(method)) <= 2, " → ".join(part.__name__ for part in reversed(lineage(method)))
    assert all(set(part.__bases__) <= {Options, ABC} for part in mixins(method)), mixins(method)


@every_method
def test_no_field_is_declared_again_by_a_subclass(method: type[Method]) -> None:
    declared: dict[str, str] = {}
    for part in [*mixins(method), *reversed(lineage(method))]:
        fields = set(vars(part).get("__annotations__", {})) & set(part.model_fields)
        again = {name: (declared[name], part.__name__) for name in fields & set(declared)}
        assert not again, f"declared twice: {again}"
        declared |= dict.fromkeys(fields, part.__name__)
    assert set(declared) == set(method.model_fields)


@every_method
def test_no_two_fields_of_a_method_have_the_same_symbol_or_label(method: type[Method]) -> None:
    fields = describe(method)
    symbols = [field.shown.symbol for field in fields if field.shown.symbol]
    for names in (symbols, [field.label for field in fields]):
        assert len(set(names)) == len(names), sorted(names)


TERMS = ("pseudo-label", "manifold", "gradient", "triplet", "negative", "orthonormal", "projection", "softmax",
         "kernel", "covariance", "embedding", "latent", "affinit", "encoder", "optimi", "loss", "graph", "metric",
         "cluster")


@every_method
def test_a_newcomer_can_read_the_summary(method: type[Method]) -> None:
    summary = method.card.summary
    assert summary.endswith(".")
    assert summary.count(". ") <= 1, "at most two sentences"
    assert len(summary.split()) <= 50
    assert not [term for term in TERMS if term in summary.lower()], "terms belong to the idea"
