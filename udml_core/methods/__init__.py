"""The methods, by an explicit tuple: a new one is a file, a line here and a golden test."""

from udml_core.errors import UserError
from udml_core.methods.base import Described, Epoch, Method, Setting, Shown, State, describe
from udml_core.methods.baselines import PCA, Frozen, Whiten
from udml_core.methods.embedder import Embedder, Head
from udml_core.methods.labeled import Angular, Triplet
from udml_core.methods.plm import PLM
from udml_core.methods.rpml import RPML, SRPML
from udml_core.methods.semi import APIT, APLLR, ISDML, LRML, SERAPH
from udml_core.methods.ssdml import SSDML

METHODS: tuple[type[Method], ...] = (RPML, SRPML, PLM, SSDML, LRML, SERAPH, ISDML, APLLR, APIT, Triplet, Angular,
                                     Whiten, PCA, Frozen)


def find_method(name: str) -> type[Method]:
    """A method by its name.

    Raises:
        UserError: there is none of that name.
    """
    for method in METHODS:
        if method.name == name:
            return method
    raise UserError(f"The method must be one of {', '.join(method.name for method in METHODS)}, got '{name}'.")


__all__ = ["APIT", "APLLR", "ISDML", "LRML", "METHODS", "PCA", "PLM", "RPML", "SERAPH", "SRPML", "SSDML", "Angular",
           "Described", "Embedder", "Epoch", "Frozen", "Head", "Method", "Setting", "Shown", "State", "Triplet",
           "Whiten", "describe", "find_method"]
