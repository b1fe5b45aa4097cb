"""What the words of the course claim, against the mathematics, in every language."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page
from scipy.spatial.distance import cdist

from experiments.lessons.measures import ROWS
from udml_core.data import catalog
from udml_core.exploration.lesson_examples import digits_vectors
from udml_core.results.lesson_tasks import TASKS
from udml_core.results.lesson_texts import translations
from udml_core.results.lessons import course, course_guide, course_texts

pytestmark = pytest.mark.browser

Open = Callable[..., Page]
LANGUAGES = ("en", *translations())
FRACTIONS = {"½": 1 / 2, "¼": 1 / 4, "": 1.0}
TERM = re.compile(r"([+−]?)\s*([½¼]?)\|([A-Z]{2})\|²")


def in_language(english: str, language: str) -> str:
    """Return a text of the course, which must have a translation."""
    return english if language == "en" else translations()[language][english]


def text_of(lesson: str, begin: str) -> str:
    """Return the English text of a lesson that begins so."""
    (text,) = (text for text in course_texts()[lesson] if text.startswith(begin))
    return text


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_identity_of_the_median_in_lesson_2_holds_for_all_triangles(language: str) -> None:
    words = in_language(text_of("triplets", "“Far from the positive.”"), language)
    left, right = re.search(r"\|NM\|²\s*=[^.]*", words).group().split("=")  # type: ignore[union-attr]
    terms = TERM.findall(right)
    assert len(terms) == right.count("²")  # nothing of the formula was skipped
    rng = np.random.default_rng(0)
    for anchor, positive, negative in rng.normal(size=(50, 3, 2)):
        points = {"A": anchor, "P": positive, "N": negative, "M": (anchor + positive) / 2}

        def squared(names: str, points: Mapping[str, Any] = points) -> float:
            return float(((points[names[0]] - points[names[1]]) ** 2).sum())

        value = sum((-1 if sign == "−" else 1) * FRACTIONS[share] * squared(names) for sign, share, names in terms)
        assert value == pytest.approx(squared(TERM.findall(left)[0][2]))


NEEDS_THRESHOLD = {
    "en": ("unlocks", "a threshold", "the nearest stored face is always"),
    "de": ("entsperrt", "eine Schwelle", "das nächste gespeicherte Gesicht ist immer"),
    "es": ("desbloquea", "un umbral", "la cara guardada más cercana siempre es"),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_lesson_9_says_that_verification_needs_a_threshold(language: str) -> None:
    """If only an owner is stored, the nearest stored image is the owner's for every image that asks."""
    words = in_language(text_of("measures", "Only the nearest photograph decides"), language)
    assert all(part in words for part in NEEDS_THRESHOLD[language])
    vectors, labels = digits_vectors()[list(ROWS)], catalog.load("digits").labels[list(ROWS)]
    distances = cdist(vectors[1:], vectors[:1])  # of ten images that ask, to the one that is stored
    is_own = labels[1:] == labels[0]
    assert 0 < is_own.sum() < len(is_own)
    accepted = labels[distances.argmin(axis=1)] == labels[0]
    assert accepted.all()  # without a threshold, everyone passes
    passes = distances[:, 0] <= distances[is_own].min()
    assert passes.any()
    assert (~passes).sum() >= len(passes) / 2  # with one, most are turned away


UNLABELED = {
    "en": r"\bunlabel|\bwithout (?:any )?labels?\b|\bno labels?\b",
    "de": r"ohne (?:ein )?Labels?\b|unbeschriftet",
    "es": r"\bsin (?:ninguna )?etiquetas?\b",
}
PURITY = {"en": "purity", "de": "Reinheit", "es": "pureza"}
LABELS = {"en": r"\blabels every one of", "de": r"beschriftet alle", "es": r"etiqueta las 10"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_text_gives_the_purity_of_images_without_labels(language: str) -> None:
    texts = {text for place in course_texts().values() for text in place}
    sentences = [sentence for text in texts for sentence in re.split(r"(?<=[.!?])\s+", in_language(text, language))]
    pure = [sentence for sentence in sentences if PURITY[language].casefold() in sentence.casefold()]
    assert len(pure) >= 8
    assert not [sentence for sentence in pure if re.search(UNLABELED[language], sentence, re.IGNORECASE)]
    question = in_language(text_of("epsilon", "A colleague labels"), language)
    assert re.search(LABELS[language] + r".*" + PURITY[language] + r"[^.]*99\s%", question)


def test_purity_changes_with_the_labels_though_no_cluster_does(open_lesson: Open) -> None:
    page = open_lesson("epsilon")
    before, after = page.evaluate("""() => {
        const { lesson: own, start, data } = lesson;
        const run = (data) => own.compute({ ...start, images: "digits", epsilon: 0.6 }, data);
        const turned = structuredClone(data);
        const walk = (part) => Object.entries(part).forEach(([name, value]) => {
            if (name === "classes") part[name] = value.map((_class, at) => value[(at * 7) % value.length]);
            else if (value?.constructor === Object) walk(value);
        });
        walk(turned);
        return [run(data), run(turned)].map(({ clusters, purity }) => ({ clusters: String(clusters), purity }));
    }""")
    assert before["clusters"] == after["clusters"]
    assert before["purity"] - after["purity"] > 0.2


FALLS = {
    "en": r"MAP@R rises from (\d+) % to (\d+) %.* and R@1 falls from (\d+) % to (\d+) %",
    "de": r"steigt bei k = 5, einmal, MAP@R von (\d+) % auf (\d+) %.* und R@1 sinkt von (\d+) % auf (\d+) %",
    "es": r"MAP@R sube del (\d+) % al (\d+) %.* y R@1 baja del (\d+) % al (\d+) %",
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_lesson_12_says_that_one_measure_rises_and_the_other_falls_on_its_digits(
    open_lesson: Open, language: str
) -> None:
    page = open_lesson("reranking", f"?language={language}")
    found = re.search(FALLS[language], page.evaluate("lesson.lesson.fails").replace("\N{NO-BREAK SPACE}", " "))
    assert found
    averaged = page.evaluate("Array.from(lesson.data.reranking.averaged)")
    (recall, precision), (recall_at_5, precision_at_5) = averaged[0:2], averaged[10:12]
    assert recall_at_5 < recall
    assert precision_at_5 > precision
    assert [int(part) for part in found.groups()] == [
        round(value) for value in (precision, precision_at_5, recall, recall_at_5)
    ]
    page.click(".skip")
    shown = page.locator(".formula").inner_text()  # at the start, with k = 5
    assert page.evaluate("lesson.state.k") == 5
    for value in (recall, recall_at_5, precision, precision_at_5):
        number = f"{value:.1f}" if language == "en" else f"{value:.1f}".replace(".", ",")
        assert number in shown


DRAWN = """() => {
    const { points, classes, matrix, at, ranked, distances } = lesson.numbers;
    const disks = classes.filter((label) => !label).length; // the last circle of all is the query
    const circles = [...document.querySelectorAll(".stage circle[style*=pointer]")].slice(0, disks).map((part) =>
        ["cx", "cy"].map((name) => Number(part.getAttribute(name))));
    const dashed = [...document.querySelectorAll(".stage path[stroke-dasharray='6 5']")].at(-1);
    const numbers = dashed.getAttribute("d").match(/-?[\\d.]+/g).map(Number);
    return { points, classes, matrix, at, ranked, distances, circles, ellipse: numbers,
        printed: [...document.querySelectorAll(".formula math")].map((math) => math.textContent.replace(/\\s/g, "")) };
}"""


@pytest.mark.parametrize(
    "state",
    [{}, {"axis": [1.4, 0.765], "other": 0.4}, {"data": "ring", "query": 11, "axis": [0.3, -1.1], "other": 0.9}],
)
def test_the_distance_of_lesson_1_is_the_ordinary_one_after_the_projection_that_it_states(
    open_lesson: Open, state: dict[str, Any]
) -> None:
    page = open_lesson("metric")
    page.click(".skip")
    page.evaluate("state => lesson.show(state)", state)
    drawn = page.evaluate(DRAWN)
    points, matrix = np.array(drawn["points"]), np.array(drawn["matrix"])
    assert "M=LL⊤" in drawn["printed"]  # the directions are the columns of L
    assert "L⊤L" in drawn["printed"]  # or its rows
    projection = np.linalg.cholesky(matrix)
    assert projection @ projection.T == pytest.approx(matrix)
    projected = points @ projection  # each point multiplied by the transposed L
    query, nearest = drawn["at"], drawn["ranked"][0]
    distance = np.linalg.norm(projected[query] - projected[nearest])
    assert distance == pytest.approx(drawn["distances"][0])
    assert f"d={distance:.2f}" in drawn["printed"]
    rows = projection.T  # the same with the directions as rows
    assert rows.T @ rows == pytest.approx(matrix)
    disks = points[np.array(drawn["classes"]) == 0]
    pixels = np.array(drawn["circles"])
    scale = [np.polyfit(pixels[:, axis], disks[:, axis], 1) for axis in (0, 1)]
    border = np.array(drawn["ellipse"]).reshape(-1, 2)
    border = np.stack([np.polyval(scale[axis], border[:, axis]) for axis in (0, 1)], axis=1)
    assert np.linalg.norm((border - points[query]) @ projection, axis=1) == pytest.approx(distance, abs=0.03)


SYMBOLS = {"τ": "temperature", "η": "weight of the other images"}
NAMES = {"en": "Written {}:", "de": "Geschrieben {}:", "es": "Se escribe {}:"}
OTHER_NAMES = ("step size", "learning rate", "threshold", "margin", "strength", "perplexity", "share", "noise")


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_a_symbol_has_one_meaning_in_the_whole_course(symbol: str) -> None:
    """The glossary has the meaning; every other text that names the symbol gives it the same name."""
    terms = {entry["term"]: entry for entry in course_guide()["terms"]}
    owners = [name for name, entry in terms.items() if symbol in entry["meaning"]]
    assert owners == [SYMBOLS[symbol]]
    term = terms[SYMBOLS[symbol]]
    for language in LANGUAGES:
        assert in_language(term["meaning"], language).startswith(NAMES[language].format(symbol))
    used = {place: [text for text in texts if symbol in text] for place, texts in course_texts().items()}
    tasks = set(TASKS[term["lesson"]].texts)
    assert {place for place, texts in used.items() if texts} <= {term["lesson"], "tasks", "answers", "course"}
    assert set(used["tasks"]) <= tasks
    own = next(entry for entry in course_guide()["lessons"] if entry["lesson"] == term["lesson"])
    assert set(used["course"]) <= {own["text"], own["words"], term["meaning"]}
    assert [lesson.id for lesson in course() if f"<mi>{symbol}</mi>" in lesson.script] == [term["lesson"]]
    texts = [text for place in used.values() for text in place]
    named = [
        name.strip()
        for text in texts
        for name in (
            *re.findall(rf"^{symbol}, ([a-z ]+)", text),
            *re.findall(rf"({'|'.join((*terms, *OTHER_NAMES))}) {symbol}", text),
        )
    ]
    assert named
    assert set(named) == {term["term"]}, named
    label = next(text for text in used[term["lesson"]] if text.startswith(f"{symbol}, {term['term']}"))
    for language in translations():  # its control names it so in each language
        assert in_language(label, language).startswith(f"{symbol}, {in_language(term['term'], language)}")
    controls = [
        json.loads(found) for lesson in course() for found in re.findall(r'label: ("(?:[^"\\]|\\.)*")', lesson.script)
    ]
    assert len([words for words in controls if symbol in words and "competitors" not in words]) == 1
