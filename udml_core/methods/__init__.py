"""The methods.

To add a method, write a file and a golden test, and add the class to `METHODS`.
"""

from collections.abc import Callable

from udml_core.base.errors import UserError, quoted
from udml_core.methods.anchor_neighborhoods import AND
from udml_core.methods.barlow_twins import BarlowTwins
from udml_core.methods.base import Card, Epoch, Method, Setting, State
from udml_core.methods.closed_form import PCA, Frozen, Whiten
from udml_core.methods.deepcluster import DeepCluster
from udml_core.methods.distill import Distill
from udml_core.methods.embedder import Embedder, Head, LatentHead, is_normalized
from udml_core.methods.exemplar import Exemplar
from udml_core.methods.isif import ISIF
from udml_core.methods.ml_kml import KML, ML
from udml_core.methods.mom import MOM
from udml_core.methods.nca_lmnn import LMNN, NCA
from udml_core.methods.nce import NCE
from udml_core.methods.nml import NML
from udml_core.methods.plm import PLM
from udml_core.methods.pslr import PSLR
from udml_core.methods.rotnet import RotNet
from udml_core.methods.rpml import RPML, SRPML
from udml_core.methods.seraph import SERAPH
from udml_core.methods.shared.pair_method import PairMethod
from udml_core.methods.simclr import SimCLR
from udml_core.methods.ssdml import SSDML
from udml_core.methods.ssdml_baselines import APIT, APLLR, ISDML, LRML
from udml_core.methods.stml import STML
from udml_core.methods.supcon import SupCon
from udml_core.methods.triplet_angular import Angular, Triplet
from udml_core.methods.uhml import UHML

METHODS: tuple[type[Method], ...] = (RPML, SRPML, PLM, SSDML, LRML, SERAPH, ISDML, APLLR, APIT, Triplet, Angular,
                                     NML, ML, KML, NCA, LMNN, PSLR, ISIF, NCE, Exemplar, DeepCluster, RotNet,
                                     AND, MOM, STML, UHML, SimCLR, SupCon, BarlowTwins, Distill, Whiten, PCA,
                                     Frozen)


def find_method(name: str) -> type[Method]:
    """Return the method of a name.

    Raises:
        UserError: No method has this name; the message lists the names.
    """
    for method in METHODS:
        if method.card.name == name:
            return method
    raise UserError(f"The method must be one of {', '.join(method.card.name for method in METHODS)}, "
                    f"got {quoted(name)}.")


def names_of(predicate: Callable[[Method], bool]) -> str:
    """List the names of the methods with a property, such as ``NML, ML or KML``."""
    *names, last = (method.__name__ for method in METHODS if predicate(method.make({})))
    return f"{', '.join(names)} or {last}" if names else last


__all__ = [
    "AND",
    "APIT",
    "APLLR",
    "ISDML",
    "ISIF",
    "KML",
    "LMNN",
    "LRML",
    "METHODS",
    "ML",
    "MOM",
    "NCA",
    "NCE",
    "NML",
    "PCA",
    "PLM",
    "PSLR",
    "RPML",
    "SERAPH",
    "SRPML",
    "SSDML",
    "STML",
    "UHML",
    "Angular",
    "BarlowTwins",
    "Card",
    "DeepCluster",
    "Distill",
    "Embedder",
    "Epoch",
    "Exemplar",
    "Frozen",
    "Head",
    "LatentHead",
    "Method",
    "PairMethod",
    "RotNet",
    "Setting",
    "SimCLR",
    "State",
    "SupCon",
    "Triplet",
    "Whiten",
    "find_method",
    "is_normalized",
    "names_of",
]
