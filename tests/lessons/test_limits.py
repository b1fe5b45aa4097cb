"""What the course says about the limits of its numbers, in every language."""

from __future__ import annotations

import json

import numpy as np
import pytest
from playwright.sync_api import Page

from udml_core.results.lesson_texts import translations
from udml_core.results.lessons import FOLDER, course, course_texts

SAID = {
    "it lets clusters stand in for classes": "Cluster anstelle von Klassen|clústeres en lugar de las clases",
    "treats the pairs as independent": "als unabhängig|como independientes",
    "on which both also train": "mit denen beide auch trainieren|con las que también se entrenan las dos",
    "other images could move it further": "andere Bilder könnten es weiter verschieben|otras imágenes podrían moverla",
    "Where both encoders have the same nearest image": "dasselbe nächste Bild|la misma imagen más cercana",
    "Other losses compare two images (contrastive)": "zwei Bilder (kontrastiv)|dos imágenes (contrastiva)",
    "triangle inequality": "Dreiecksungleichung|desigualdad triangular",
}
"""Words of the English text, and the words of its German and Spanish translations."""


@pytest.mark.parametrize("words", SAID)
def test_a_limit_is_said_in_each_language(words: str) -> None:
    [text] = {text for texts in course_texts().values() for text in texts if words in text}
    for language, own in zip(("de", "es"), SAID[words].split("|"), strict=True):
        assert own in translations()[language][text], language


def test_each_formula_with_a_logarithm_names_its_base() -> None:
    with_logarithm = [lesson.id for lesson in course() if "<mi>log</mi>" in lesson.script or "−log P" in lesson.script
                      or "the entropy H" in lesson.script]
    assert with_logarithm == ["instances", "collapse", "measures"]
    for lesson in course():
        assert ("natural logarithm" in lesson.script) == (lesson.id in with_logarithm), lesson.id


@pytest.mark.browser
def test_the_table_of_real_encoders_has_the_intervals_of_its_images(open_lesson: object) -> None:
    page: Page = open_lesson("encoders")  # type: ignore[operator]
    page.click(".skip")
    page.get_by_text("Measured with two real encoders").click()
    shown = page.locator(".formula table").first.locator("tbody tr").all()  # of R@1
    rows = json.loads((FOLDER / "encoders.json").read_text(encoding="utf-8"))["record"]
    draws = np.random.default_rng(0)
    for row, line in zip(rows, shown, strict=True):
        cells = [cell.inner_text() for cell in line.locator("td").all()]
        for value, cell in zip((row["first"][0], row["second"][0], row["both"][0]), cells, strict=False):
            share, reach = (float(part) for part in cell.split(" ± "))
            assert share == round(value, 1)
            repeated = 100 * draws.binomial(row["images"], value / 100, 20_000) / row["images"]
            assert np.mean(np.abs(repeated - value) <= reach + 0.05) == pytest.approx(0.95, abs=0.02)
