"""The methods by name: every class with a card is found, in order, and a name loads one file only."""

from __future__ import annotations

import inspect
import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from udml_core import methods
from udml_core.base.errors import UserError
from udml_core.methods import METHODS, Method, find_method
from udml_core.methods.registry import declared_in
from udml_core.methods.rpml import RPML

ORDER = ["rpml", "srpml", "plm", "ssdml", "lrml", "seraph", "isdml", "apllr", "apit", "triplet", "angular", "nml",
         "ml", "kml", "nca", "lmnn", "pslr", "isif", "nce", "exemplar", "deepcluster", "rotnet",
         "and", "mom", "stml", "uhml", "simclr", "supcon", "barlow", "distill", "whiten", "pca", "frozen"]
"""The methods of version 0.3 in the order of forms and lists; later methods may stand between them."""


def test_every_method_of_the_folder_is_found() -> None:
    modules = [import_module(f"{methods.__name__}.{module.name}") for module in pkgutil.iter_modules(methods.__path__)]
    classes = {value for module in modules for value in vars(module).values()
               if isinstance(value, type) and issubclass(value, Method) and not inspect.isabstract(value)}
    assert set(METHODS) == {method for method in classes if "card" in vars(method)}
    assert all(find_method(method.card.name) is method for method in METHODS)
    assert len({method.card.title for method in METHODS}) == len(METHODS)


def test_methods_keep_their_order() -> None:
    assert [method.card.name for method in METHODS if method.card.name in ORDER] == ORDER


def test_a_class_is_also_a_name_of_the_package() -> None:
    assert methods.RPML is RPML
    assert not hasattr(methods, "RPLM")


def test_an_unknown_name_is_refused_with_the_names() -> None:
    with pytest.raises(UserError, match=r"must be one of rpml, srpml, .*, pca, frozen, got 'rplm'\."):
        find_method("rplm")


def test_a_name_loads_the_file_of_its_method_only() -> None:
    script = ("import sys; from udml_core.methods import find_method; find_method('barlow');"
              "print(*(name for name in sys.modules if name.startswith('udml_core.methods.')))")
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    files = {method.__module__ for method in METHODS} & set(loaded)
    assert files == {"udml_core.methods.barlow_twins", "udml_core.methods.closed_form"}, "heads start with PCA"


@pytest.mark.parametrize(("first", "second", "message"), [
    ('card: ClassVar[Card] = Card(name="a"', 'card: ClassVar[Card] = Card(name="a"', "'a' of a method in two.py"),
    ('card: ClassVar[Card] = Card(name="a"', 'card: ClassVar[Card] = Card(title="b"', "two.py must begin so"),
    ('card = Card(name="a"', 'card: ClassVar[Card] = Card(name="b"', "one.py must begin so")])
def test_a_card_that_cannot_be_found_is_refused(first: str, second: str, message: str, tmp_path: Path) -> None:
    for name, card in (("one", first), ("two", second)):
        (tmp_path / f"{name}.py").write_text(f"class {name.title()}(Method):\n    {card})\n", encoding="utf-8")
    with pytest.raises(TypeError, match=message):
        declared_in(tmp_path)
