"""Charts without meaning are sentences, shares keep to their axis, and only the open section is drawn."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from pages.parts.draw import figures
from pages.parts.draw.palette import change_style, signed
from pages.parts.draw.sections import Section, open_section, show_sections
from pages.parts.neighborhoods import flat
from tests.app.opening import texts
from udml_core.numerics.explanations import LinearNeighborhoods

Drawn = dict[str, go.Figure]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Drawn:
    """The charts that are drawn, by key, and no others."""
    charts: Drawn = {}
    monkeypatch.setattr(figures, "draw", lambda figure, key, _alt: charts.update({key: figure}))
    return charts


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sentences that are shown in place of charts."""
    sentences: list[str] = []
    monkeypatch.setattr(st, "caption", sentences.append)
    return sentences


def rows(name: str, *values: float | None) -> list[Mapping[str, float | None]]:
    return [{"epoch": float(epoch), name: value} for epoch, value in enumerate(values)]


def test_a_single_value_is_a_sentence_and_no_chart(drawn: Drawn, said: list[str]) -> None:
    figures.curve("effective rank", {"pca": rows("effective rank", None, 12.25)}, "rank")
    figures.lines([3], [40.0], "coverage, %", "ε", "coverage")
    assert drawn == {}
    assert said[0] == "**Effective rank**: 12.25 (epoch 1, the only value)"
    assert said[1].startswith("**Coverage, %**: 40 at ε 3")


def test_without_values_nothing_is_drawn_or_said(drawn: Drawn, said: list[str]) -> None:
    figures.curve("loss", {"frozen": rows("loss", None, None)}, "loss")
    figures.lines([], [], "coverage, %", "ε", "coverage")
    assert (drawn, said) == ({}, [])


def test_every_axis_has_a_title_with_its_unit(drawn: Drawn) -> None:
    figures.curve("sample map@r", {"run": rows("sample map@r", 0.5, 0.6)}, "shares")
    figures.curve("positive distance", {"run": rows("positive distance", 0.5, 0.6)}, "unknown")
    figures.lines([1, 2], [40.0, 50.0], "purity, %", "ε", "purity")
    figures.lines([1, 2], [40.0, 50.0], "clusters", "ε", "clusters", logarithmic=True)
    figures.histogram([0, 90, 180], [3, 4], "Angles of triplets", "angles", 45)
    figures.ranked([4, 2], "Images in each cluster", "rank", "sizes")
    figures.bars(["cat", "dog"], [3, 4], "Images per class", "classes")
    assert {key: (chart.layout.xaxis.title.text, chart.layout.yaxis.title.text) for key, chart in drawn.items()} == {
        "shares": ("epoch", "MAP@R, %"), "unknown": ("epoch", "positive distance"), "purity": ("ε", "share, %"),
        "clusters": ("ε", "clusters, log scale"), "angles": ("half angle at the negative, °", "triplets"),
        "sizes": ("rank", "images, log scale"), "classes": ("images", "class")}


def test_a_run_with_one_value_is_named_beside_the_lines_of_the_others(drawn: Drawn, said: list[str]) -> None:
    figures.curve("sample recall@1", {"rpml": rows("sample recall@1", 0.5, 0.9),
                                      "pca": rows("sample recall@1", 0.754)}, "recall")
    assert [trace.name for trace in drawn["recall"].data] == ["rpml"]
    assert list(drawn["recall"].data[0].y) == [50.0, 90.0]
    assert said == ["**R@1 on a sample of the test half**, pca: 75.4 % (epoch 0, the only value)"]


@pytest.mark.parametrize("shares", [[0.0, 0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.98, 0.999]])
def test_the_axis_of_shares_stays_within_0_and_100_percent(shares: Sequence[float], drawn: Drawn) -> None:
    figures.curve("violating", {"run": rows("violating", *shares)}, "violating")
    figures.lines(range(len(shares)), [100 * share for share in shares], "purity, %", "ε", "purity")
    for chart in drawn.values():
        low, high = chart.layout.yaxis.range
        assert 0 <= low <= 100 * min(shares)
        assert 100 * max(shares) <= high <= 100
        assert high - low >= 0.5, "an axis of no length draws nothing"
    assert len(drawn) == 2


def sectioned() -> None:
    """Show two sections, the second of which opens the first."""
    def first() -> None:
        st.caption("the first section is drawn")

    def second() -> None:
        st.caption("the second section is drawn")
        st.button("Back", on_click=open_section, args=("parts", "One"))

    show_sections([Section("one", "One", first), Section("two", "Two", second)], "parts")


def test_only_the_section_in_the_address_is_drawn() -> None:
    script = ("from tests.app.test_figures import sectioned\nsectioned()")
    assert "first" in texts(AppTest.from_string(script).run())
    for name in ("two", "nonsense"):
        test = AppTest.from_string(script)
        test.query_params["section"] = name
        shown = texts(test.run())
        assert not test.exception
        assert ("second" in shown) == (name == "two")
        assert ("first" in shown) == (name != "two")


def test_a_section_can_open_another_one() -> None:
    test = AppTest.from_string("from tests.app.test_figures import sectioned\nsectioned()")
    test.query_params["section"] = "two"
    test = test.run().button[0].click().run()
    assert not test.exception
    assert "first" in texts(test)
    assert "section" not in test.query_params


def test_every_line_differs_and_six_runs_differ_in_color() -> None:
    styles = [figures.line_style(number) for number in range(24)]
    assert len({tuple(style.values()) for style in styles}) == 24
    assert len({style["color"] for style in styles[:6]}) == 6


def test_classes_that_are_numbers_each_have_a_label(drawn: Drawn) -> None:
    figures.bars(["0", "1", "2"], [3, 4, 5], "Images per class", "classes")
    assert drawn["classes"].layout.yaxis.type == "category"


def test_bars_of_candidates_begin_at_the_threshold_and_do_not_cover_each_other(
        drawn: Drawn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flat, "draw", figures.draw)
    worst, members = np.array([[1.0, 0.97, 0.76, 0.95, 0.88]]), np.array([[True, True, False, True, False]])
    flat.quality_bars(LinearNeighborhoods(np.arange(5)[None], members, np.zeros((1, 2, 1)), worst, worst), 0.9, 1)
    chart = drawn["neighborhood-quality"]
    assert [list(bars.x) for bars in chart.data] == [[2, 4], [3, 5]], "the first candidate is not tested"
    assert [(bars.base + np.array(bars.y)).tolist() for bars in chart.data] == [
        pytest.approx([97, 95]), pytest.approx([76, 88])]
    assert {bars.base for bars in chart.data} == {90}
    assert all(bars.width < 1 for bars in chart.data)


def test_a_change_has_a_minus_sign_and_the_color_of_its_effect() -> None:
    assert [signed(change) for change in (-7.04, 3.14, 0.04, -0.04)] == ["−7.0", "+3.1", "0.0", "0.0"]
    assert signed(-0.324, 2) == "−0.32"
    assert change_style(-7) == {"delta_color": "red", "delta_arrow": "down"}
    assert change_style(-7, lower_is_better=True) == {"delta_color": "green", "delta_arrow": "down"}
    assert change_style(7, lower_is_better=True) == {"delta_color": "red", "delta_arrow": "up"}
    assert change_style(-0.04) == {"delta_color": "off", "delta_arrow": "off"}
    assert change_style(-0.04, 2) == {"delta_color": "red", "delta_arrow": "down"}


def test_small_changes_of_mean_cosines_look_small() -> None:
    low, high = figures.steady_range([0.011, 0.012], 0.06)
    assert (round(low, 4), round(high, 4)) == (-0.0185, 0.0415)
    assert figures.steady_range([0.0, 1.0], 0.06) == (-0.1, 1.1), "room above and below"


def test_a_curve_with_standard_errors_has_its_interval_and_another_has_none() -> None:
    figure = go.Figure()
    rows = [{"epoch": epoch, "second opinion": 0.1 * epoch, "second opinion error": 0.01} for epoch in range(3)]
    assert figures.interval_band(figure, rows, "second opinion", "#0072b2")
    low, high = (trace.y for trace in figure.data)
    assert np.allclose(np.array(high) - np.array(low), 2 * 1.96 * 0.01)
    assert np.allclose((np.array(high) + np.array(low)) / 2, [0.0, 0.1, 0.2])
    assert figure.data[1].fillcolor == "rgba(0,114,178,0.18)"
    assert not figures.interval_band(go.Figure(), [{"epoch": 0, "loss": 1.0}], "loss", "#0072b2")
    assert figures.curve_names(rows) == ["second opinion"], "errors are no curves of their own"


def test_names_are_no_html_in_a_chart_and_its_own_tags_are() -> None:
    names = ["a<br>b", "<a href='x'>y</a>", "&lt;"]
    figure = go.Figure(go.Scatter(x=[1, 2, 3], y=names, text=names, name="<i>n</i>",
                                  hovertemplate="%{text}<extra></extra>"))
    figure.update_yaxes(ticktext=[f"{figures.italic(names[0])}{figures.BREAK}{figures.small('s')}"], tickvals=[0])
    shown = json.loads(figures._without_html(figure).to_json())
    plain = ["a&lt;br&gt;b", "&lt;a href='x'&gt;y&lt;/a&gt;", "&amp;lt;"]
    (trace,) = shown["data"]
    assert (trace["y"], trace["text"], trace["name"]) == (plain, plain, "&lt;i&gt;n&lt;/i&gt;")
    assert trace["hovertemplate"] == "%{text}<extra></extra>"
    assert shown["layout"]["yaxis"]["ticktext"] == [
        '<i>a&lt;br&gt;b</i><br><span style="font-size:12px">s</span>']
    unchanged = go.Figure(go.Scatter(x=np.arange(3), y=["a", "b", "c"]))
    assert figures._without_html(unchanged) is unchanged, "nothing is copied without need"
