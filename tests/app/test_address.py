"""Parsers of the address: valid values, defaults, and short links."""

from __future__ import annotations

import math
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

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


def two_controls() -> None:
    """Choose in two segmented controls; the address always holds the second choice."""
    from pages.parts.shell.address import choose_segment

    choose_segment("Kind", "kind", ["both", "same", "different"], "both", key="kind")
    choose_segment("Serves", "serves", {"first": "First", "groups": "Groups"}, "first", key="serves",
                   keeps_default=True)


def kind_of(test: AppTest) -> tuple[str, Any]:
    """Return what the first control shows, and what the address says of it."""
    return test.segmented_control(key="kind").value, dict(test.query_params).get("kind")


@pytest.fixture
def controls() -> AppTest:
    return AppTest.from_function(two_controls, default_timeout=60).run()


def test_a_click_that_comes_before_the_browser_has_the_last_address_is_not_lost(controls: AppTest) -> None:
    controls.segmented_control(key="kind").set_value("same").run()
    assert kind_of(controls) == ("same", "same")
    del controls.query_params["kind"]  # the browser has not received the new address when the user clicks again
    controls.segmented_control(key="kind").set_value("different").run()
    assert kind_of(controls) == ("different", "different")


def test_a_click_on_another_control_brings_an_older_address_that_takes_nothing_back(controls: AppTest) -> None:
    controls.segmented_control(key="kind").set_value("same").run()
    del controls.query_params["kind"]  # as the browser showed it when the user clicked the second control
    controls.segmented_control(key="serves").set_value("groups").run()
    assert kind_of(controls) == ("same", "same")
    assert dict(controls.query_params)["serves"] == "groups"


def test_a_button_that_uses_a_choice_keeps_it() -> None:
    def choose_and_start() -> None:
        import streamlit as st

        from pages.parts.shell.address import choose_segment, keep_clicks
        chosen = choose_segment("Kind", "kind", ["both", "same"], "both", key="kind")
        if st.button("Start", on_click=keep_clicks):
            st.session_state["started"] = chosen

    test = AppTest.from_function(choose_and_start, default_timeout=60).run()
    test.segmented_control(key="kind").set_value("same").run()
    del test.query_params["kind"]
    test.button[0].click().run()
    assert test.session_state["started"] == "same"


def test_a_choice_that_was_left_with_back_does_not_return_with_a_later_click(
        controls: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    controls.segmented_control(key="kind").set_value("same").run()
    monkeypatch.setattr(address, "SETTLES", 0)  # seconds later
    del controls.query_params["kind"]
    controls.run()
    controls.segmented_control(key="serves").set_value("groups").run()
    assert kind_of(controls) == ("both", None)


def test_a_control_follows_back_and_forward(controls: AppTest) -> None:
    controls.segmented_control(key="kind").set_value("same").run()
    del controls.query_params["kind"]
    assert kind_of(controls.run()) == ("both", None)
    controls.query_params["kind"] = "same"
    assert kind_of(controls.run()) == ("same", "same")


def test_a_default_is_in_the_address_only_where_a_link_without_it_means_something_else(controls: AppTest) -> None:
    assert dict(controls.query_params) == {"serves": "first"}


def test_a_click_is_in_the_address_before_the_page_is_drawn() -> None:
    def slow() -> None:
        import streamlit as st

        from pages.parts.shell.address import choose_segment
        st.session_state["before"] = dict(st.query_params)
        choose_segment("Kind", "kind", ["both", "same"], "both", key="kind")

    test = AppTest.from_function(slow, default_timeout=60).run()
    test.segmented_control(key="kind").set_value("same").run()
    assert test.session_state["before"] == {"kind": "same"}


def test_a_page_writes_an_address_again_that_a_link_to_itself_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A link to the page in view changes what the page reads, not what the browser shows."""
    def drawn() -> None:
        import streamlit as st

        from pages.parts.shell import address
        address.drop_foreign_parameters(st.session_state.get("shown", "search"))

    written: list[Any] = []
    monkeypatch.setattr(type(st.query_params), "from_dict", lambda _, parameters: written.append(dict(parameters)))
    test = AppTest.from_function(drawn, default_timeout=60)
    test.query_params["run"] = "a"
    test.run()
    assert written == [{"run": ["a"]}], "another page was left"
    test.run()
    assert len(written) == 1, "the browser shows it already"
    test.query_params["run"] = "b"
    test.run()
    assert written[1:] == [{"run": ["b"]}]
    test.session_state["shown"] = "runs"
    test.run()
    assert len(written) == 3, "another page was left"
