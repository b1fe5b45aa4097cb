"""The position of a live slider: the browser's movements, and values that the page asks for."""

from pages.parts.draw.slider import position_after


def test_the_first_position_is_the_passed_value() -> None:
    assert position_after(None, 5, None) == (5, 0)


def test_a_movement_wins_over_an_address_that_names_an_earlier_position() -> None:
    memory = (5, 12, 2)  # the page passed 5 last, and the slider stood at 12
    assert position_after(memory, 6, {"value": 17, "revision": 3}) == (17, 3)


def test_a_page_moves_the_slider_by_another_value() -> None:
    assert position_after((5, 12, 2), 20, {"value": 12, "revision": 2}) == (20, 3)


def test_the_value_that_was_passed_before_does_not_move_the_slider_back() -> None:
    assert position_after((5, 12, 2), 5, {"value": 12, "revision": 2}) == (12, 2)
    assert position_after((5, 12, 2), 12, {"value": 12, "revision": 2}) == (12, 2)
