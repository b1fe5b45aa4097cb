"""Parsers of the address: valid values, defaults, and short links."""

from __future__ import annotations

import math

import pytest
import streamlit as st

from pages.parts.shell import address


@pytest.fixture
def parameters(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The address parameters that the parsers read and write."""
    values: dict[str, str] = {}
    monkeypatch.setattr(st, "query_params", values)
    return values


@pytest.mark.parametrize(("text", "number"), [
    ("7", 7), ("0", 0), ("10", 10), ("2.5", 2.5), ("1e1", 10), ("10.1", 3), ("-0.1", 3), ("1e12", 3), ("nan", 3),
    ("inf", 3), ("-inf", 3), ("x", 3), ("", 3), ("²", 3), ("9" * 400, 3)])
def test_a_number_is_read_within_its_range(parameters: dict[str, str], text: str, number: float) -> None:
    parameters["k"] = text
    assert address.number_from_address("k", 3, 0, 10) == number


def test_a_missing_number_is_the_default_and_infinity_is_never_read(parameters: dict[str, str]) -> None:
    assert address.number_from_address("k", 3) == 3
    parameters["k"] = "inf"
    assert math.isfinite(address.number_from_address("k", 3))


@pytest.mark.parametrize(("text", "indices"), [
    ("3.17.44", [3, 17, 44]), ("3", [3]), ("", []), ("3.3.17.3", [3, 17]), ("-4", []), ("3.999999.x", [3]), ("²", []),
    ("9" * 5000, []), ("inf", []), ("3..17", [3, 17]), ("50.49", [49]), ("007", [7])])
def test_indices_below_the_count_are_read_once_each(parameters: dict[str, str], text: str,
                                                    indices: list[int]) -> None:
    parameters["add"] = text
    assert address.indices_from_address("add", 50) == indices


def test_joined_indices_are_read_back(parameters: dict[str, str]) -> None:
    parameters["add"] = address.join_indices([5, 0, 12])
    assert address.indices_from_address("add", 50) == [5, 0, 12]


@pytest.mark.parametrize(("text", "choice"), [("all", "all"), ("test", "test"), ("nowhere", "test"), ("", "test"),
                                              ("ALL", "test")])
def test_a_choice_is_read_and_an_unknown_choice_is_the_default(parameters: dict[str, str], text: str,
                                                              choice: str) -> None:
    parameters["gallery"] = text
    assert address.choice_from_address("gallery", ["test", "all"], "test") == choice


def test_a_default_is_left_out_of_the_address(parameters: dict[str, str]) -> None:
    address.write_address("k", "20", "10")
    assert parameters == {"k": "20"}
    address.write_address("k", "10", "10")
    address.write_address("never-set", "", "")
    assert parameters == {}
