"""Declared options: allowed values in words, slider steps and error messages."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import Field

from udml_core.base.declaration import Options, Shown, describe_field
from udml_core.base.errors import UserError
from udml_core.methods import METHODS, names_of
from udml_core.methods.fields import Momentum
from udml_core.methods.rpml import RPML, SRPML
from udml_core.runs import RunRequest


class Numbers(Options):
    """Numbers with different bounds."""

    even: Annotated[int, Field(ge=4, le=2000, multiple_of=2)] = 8
    triple: Annotated[int, Field(ge=3, multiple_of=3), Shown(step=1)] = 3
    quarter: Annotated[float, Field(ge=0, le=1, multiple_of=0.25)] = 0.5
    least: Annotated[int, Field(ge=1)] = 1
    above: Annotated[float, Field(gt=0)] = 1.0
    most: Annotated[float, Field(le=2)] = 1.0
    whole: int = 0
    number: float = 0.0


@pytest.mark.parametrize(("name", "allowed"), [
    ("even", "an even whole number between 4 and 2000"), ("triple", "a multiple of 3 of at least 3"),
    ("quarter", "a multiple of 0.25 between 0 and 1"), ("least", "a whole number of at least 1"), ("above", "above 0"),
    ("most", "at most 2"), ("whole", "a whole number"), ("number", "a number")])
def test_allowed_numbers_are_described_in_words(name: str, allowed: str) -> None:
    assert describe_field(Numbers, name).allowed == allowed


@pytest.mark.parametrize(("name", "step"), [("even", 2), ("triple", 3), ("quarter", 0.25), ("least", 1)])
def test_a_slider_step_is_at_least_the_multiple(name: str, step: float) -> None:
    assert describe_field(Numbers, name).slider[2] == step


@pytest.mark.parametrize(("options", "values", "message"), [
    (SRPML, {"batch": 5}, "SRPML.batch must be an even whole number between 4 and 2000, got 5."),
    (Numbers, {"least": 0}, "Numbers.least must be a whole number of at least 1, got 0."),
    (RunRequest, {"method": "m"}, "dataset is required. Give the name of a data set, or a folder of images."),
    (RunRequest, {"dataset": "d", "method": "m", "fields": 3}, "fields must be a set of FIELD=VALUE, got 3."),
    (RunRequest, {"dataset": "d", "method": 3}, "method must be text, got 3."),
    (RPML, {"nothing": 3}, "RPML has no field 'nothing'; its fields are: ")])
def test_a_message_names_the_field_the_allowed_values_and_the_value(
        options: type[Options], values: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as error:
        options.make(values)
    assert str(error.value).startswith(message)


def test_methods_are_listed_by_their_properties() -> None:
    assert names_of(lambda method: method.continues_with_pairs) == "NML, ML or KML"
    *names, last = (method.__name__ for method in METHODS if method().shares_batches)
    assert names_of(lambda method: method.shares_batches) == f"{', '.join(names)} or {last}"
    assert names_of(lambda method: method.card.name == "pca") == "PCA"


class Weights(Options):
    """A field with the text of its type, and a field with a text of its own."""

    shared: Momentum = 0.5
    own: Momentum = 0.5
    """Share of the last step."""


@pytest.mark.parametrize(("name", "text"), [("shared", "Momentum of SGD."), ("own", "Share of the last step.")])
def test_a_field_without_a_docstring_has_the_text_of_its_type(name: str, text: str) -> None:
    assert describe_field(Weights, name).text == Weights.model_json_schema()["properties"][name]["description"] == text
