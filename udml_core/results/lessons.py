"""The course: lessons that run in a browser, their files for a web page, and the answers of a class.

A lesson is one JavaScript file in `assets/lessons`, whose fields `assets/lessons/README.md` describes, and data files
that `python -m experiments.make_lessons` computes. The page Learn and the exported files show the same lesson.
"""

from __future__ import annotations

import base64
import html
import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from udml_core.base.errors import UserError
from udml_core.base.files import read_regular, replace_bytes, replace_text
from udml_core.base.offline import offline_page
from udml_core.base.paths import ASSETS, is_loopback
from udml_core.base.spreadsheets import write_rows
from udml_core.results import lesson_page, lesson_tasks
from udml_core.results.lesson_tasks import TASKS
from udml_core.results.lesson_texts import (
    as_script,
    texts_of_content,
    texts_of_module,
    texts_of_script,
    texts_script,
)

FOLDER = ASSETS / "lessons"
KIT = FOLDER / "kit"
INDEX = "index.html"
APP = "http://localhost:8501"
"""Where the app runs unless another port was chosen. An exported course leads to no address that only this computer
reaches, but says how to get the app."""
LESSON_KIT = ("kept", "language", "statistics", "draw", "tsne", "guide", "print", "formula", "fit", "present", "frame")
"""Files of the toolkit that a lesson needs, in this order."""
PATH_KIT = ("kept", "language", "draw", "guide", "course")
"""Files of the toolkit that the course's contents need, in this order."""
LIVE_MAP = "LiveTsne"
"""What a lesson with a live map names; the others need no file for it."""
MOST_BYTES = 4_000_000
"""Size at which the file of answers takes no more."""
_LINK = re.compile(r"#answers=([0-9a-f]{16}):([\w.,-]*)")
_LINKED = re.compile(r"(\w+)\.(\d|-)\.(\d|-)(?:\.(1))?", re.ASCII)
"""Answers in a link: lesson.before.after, separated by commas; "-" where a question is open, .1 after a solved task."""
TASK, SOLVED = "task", 1
"""What is recorded of a lesson's task, beside the answers to its questions."""
_INDENTED = re.compile(r"^[ \t]*(?:(?://.*)?\n[ \t]*)*", re.MULTILINE)
_TRAILING = re.compile(r"[ ]+// [^\"'`\n]*$", re.MULTILINE)
_AROUND = re.compile(r"/\*.*?\*/|\s*([{};])\s*", re.DOTALL)
_FIELD = re.compile(r'^  (\w+): (.+?),?$', re.MULTILINE)


@dataclass(frozen=True)
class Lesson:
    """A lesson of the course.

    Attributes:
        id: The name of its file.
        number: Its place in the course.
        title: Its title.
        claim: What it shows, in one sentence.
        minutes: The time that it takes.
        data: Names of its data files.
        script: Its JavaScript.
    """

    id: str
    number: int
    title: str
    claim: str
    minutes: int
    data: tuple[str, ...]
    script: str

    def content(self) -> dict[str, Any]:
        """Return the lesson's data by name."""
        return {name: json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")) for name in self.data}


@cache
def course() -> tuple[Lesson, ...]:
    """Return the lessons in the order of their numbers."""
    return tuple(sorted((read_lesson(path) for path in FOLDER.glob("*.js")), key=lambda lesson: lesson.number))


def read_lesson(path: Path) -> Lesson:
    """Read a lesson's file.

    Its first fields must each be one line of JSON: number, minutes, title, claim, data.
    """
    script = path.read_text(encoding="utf-8")
    own = script[script.find("const LESSON ="):]  # another figure may have fields of these names before it
    texts = dict(reversed(_FIELD.findall(own)))  # the first field of a name is the lesson's own
    try:
        values = {name: json.loads(texts[name]) for name in ("number", "minutes", "title", "claim", "data")}
    except (KeyError, json.JSONDecodeError) as error:
        raise UserError(f"{path.name} must begin with the fields number, minutes, title, claim and data, each on one "
                        f"line and written as JSON: {error}.") from None
    return Lesson(path.stem, values["number"], values["title"], values["claim"], values["minutes"],
                  tuple(values["data"]), script)


def find_lesson(name: str) -> Lesson | None:
    """Return the lesson of a name; None if there is none."""
    return next((lesson for lesson in course() if lesson.id == name), None)


def _kit(names: Iterable[str] = LESSON_KIT) -> str:
    """Return the colors and files of the toolkit as one script."""
    scripts = (ASSETS / "palette.js", *(KIT / f"{name}.js" for name in names))
    return "".join(script.read_text(encoding="utf-8") for script in scripts)


def lesson_script(lesson: Lesson) -> str:
    """Return a lesson with its toolkit, and its texts in all languages."""
    texts = course_texts()
    task = TASKS.get(lesson.id)
    others = (other.title for other in course())
    spoken = texts_script([*texts["kit"], *texts_of_content(lesson_guide(lesson)), *(task.texts if task else ()),
                           *texts[lesson.id], *others])
    kit = (name for name in LESSON_KIT if name != "tsne" or LIVE_MAP in lesson.script)
    return f"{spoken}{_lean(_kit(kit) + lesson.script)}\n"


def path_script() -> str:
    """Return the toolkit of the course's contents, and its texts in all languages."""
    texts = course_texts()
    titles = (lesson.title for lesson in course())
    return f"{texts_script([*texts['kit'], *texts['course'], *titles])}{_lean(_kit(PATH_KIT))}\n"


def _lean(script: str) -> str:
    """Return a script without comments, indentation, empty lines and spaces at arrows, which each file would repeat."""
    return _TRAILING.sub("", _INDENTED.sub("", script)).replace(" => ", "=>")


@cache
def course_texts() -> dict[str, list[str]]:
    """Return all texts of the course in English, by where they stand: kit, course, tasks, page, or a lesson's id."""
    places = {"kit": texts_of_script(_kit([*LESSON_KIT, "course"])), "course": texts_of_content(course_guide()),
              "tasks": (text for task in TASKS.values() for text in task.texts),
              "answers": texts_of_module(Path(lesson_tasks.__file__).read_text(encoding="utf-8")),
              "page": texts_of_module(Path(lesson_page.__file__).read_text(encoding="utf-8")),
              **{lesson.id: texts_of_script(lesson.script) for lesson in course()}}
    return {place: [*dict.fromkeys(texts)] for place, texts in places.items()}


def reader_script() -> str:
    """Return the script that knows the name of the browser's reader."""
    return (KIT / "kept.js").read_text(encoding="utf-8")


def is_reader(name: object) -> bool:
    """Return whether a name is one that a reader's browser makes up."""
    return isinstance(name, str) and re.fullmatch(r"[0-9a-f]{16}", name) is not None


def kit_style() -> str:
    """Return the style of the lessons, without its comments and what each exported file would repeat."""
    return _AROUND.sub(r"\1", (KIT / "lesson.css").read_text(encoding="utf-8"))


def course_header(href: str, pictures: bool = False) -> list[dict[str, Any]]:
    """Describe the lessons for the browser.

    Args:
        href: The address of a lesson, with {} for its id.
        pictures: Whether each lesson has its figure, small, for light and dark pages.
    """
    return [{"id": lesson.id, "title": lesson.title, "minutes": lesson.minutes,
             "href": href.format(lesson.id), "right": right_choices(lesson)["after"],
             "pictures": _pictures(lesson.id) if pictures else []}
            for lesson in course()]


@cache
def course_guide() -> dict[str, Any]:
    """Return what students need, the plans for a class, and the glossary.

    `needs` names the lessons on which each lesson builds; `lessons` has the words on each lesson's card, which give no
    answer away, and what its handout asks and notes.
    """
    guide: dict[str, Any] = json.loads((FOLDER / "course" / "guide.json").read_text(encoding="utf-8"))
    return guide


def lesson_guide(lesson: Lesson) -> dict[str, Any]:
    """Return the part of the guide that a lesson shows: on what it builds, its handout, and the terms in its text."""
    guide, text = course_guide(), lesson.script.casefold()
    return {"needs": guide["needs"], "lessons": [entry for entry in guide["lessons"] if entry["lesson"] == lesson.id],
            "terms": [entry for entry in guide["terms"] if entry["term"].casefold() in text]}


def _pictures(name: str) -> list[str]:
    """Return the light and the dark picture of a lesson as data addresses; none if the lesson has no pictures."""
    files = [FOLDER / "pictures" / f"{name}-{theme}.webp" for theme in ("light", "dark")]
    if not all(file.exists() for file in files):
        return []
    return [f"data:image/webp;base64,{base64.b64encode(file.read_bytes()).decode()}" for file in files]


def lesson_file(lesson: Lesson, app: str = APP) -> bytes:
    """Return a lesson as one HTML file that works offline.

    Args:
        lesson: The lesson.
        app: The address of the app, to which "Try it on your data" leads unless only this computer reaches it.
    """
    task = TASKS.get(lesson.id)
    header = {"course": course_header("{}.html"), "index": INDEX, "heading": True, "content": lesson.content(),
              "guide": lesson_guide(lesson), "task": task and {"texts": task.texts, "command": task.command},
              "app": "" if is_loopback(urlsplit(app).hostname) else app}
    script = (f"{lesson_script(lesson)}"
              f"window.lesson = new Lesson(document.querySelector('.lesson'), LESSON, {as_script(header)}, {{}});")
    return _page(lesson.title, "lesson", script)


def index_file() -> bytes:
    """Return the course's contents as one HTML file that works offline."""
    header = {"course": course_header("{}.html", pictures=True), "heading": True, "guide": course_guide()}
    script = f"{path_script()}showCourse(document.querySelector('.course'), {as_script(header)}, null);"
    return _page("Learn metric learning", "course", script)


def course_files(app: str = APP) -> dict[str, bytes]:
    """Return every lesson and the course's contents as HTML files by name; `app` is the address of the app."""
    return {INDEX: index_file()} | {f"{lesson.id}.html": lesson_file(lesson, app) for lesson in course()}


def course_archive(app: str = APP) -> bytes:
    """Return the files of the course as one ZIP archive; `app` is the address of the app."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in course_files(app).items():
            file.writestr(f"lessons/{name}", content)
    return archive.getvalue()


def export_course(folder: Path, app: str = APP) -> list[Path]:
    """Write every lesson and the course's contents as HTML files.

    Args:
        folder: A folder, which is created if it is missing; files of an earlier export are replaced.
        app: The address of the app.

    Returns:
        The written files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = course_files(app)
    for name, content in files.items():
        replace_bytes(folder / name, content)
    return [folder / name for name in files]


def _page(title: str, kind: str, script: str) -> bytes:
    return offline_page(KIT / "page.html", TITLE=html.escape(title), CLASS=kind, STYLE=kit_style(), SCRIPT=script)


def record_answer(folder: Path, lesson: str, question: str, choice: int, reader: str) -> bool:
    """Add an answer to the answers of the class.

    Args:
        folder: The folder of runs; the answers are in its subfolder `lessons`.
        lesson: The id of a lesson.
        question: "before", "after" or "task".
        choice: The number of the chosen answer; 1 for a solved task.
        reader: A random name that the reader's browser made up.

    Returns:
        Whether the answer was recorded: it must be well-formed, and the file must not be full.
    """
    if find_lesson(lesson) is None or type(choice) is not int or not is_reader(reader):
        return False
    if question not in ("before", "after", TASK) or not (choice == SOLVED if question == TASK else 0 <= choice < 10):
        return False
    path = _answers(folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > MOST_BYTES:
        return False
    with path.open("a", encoding="utf-8") as file:
        file.write("\n" + json.dumps([lesson, question, choice, reader]))  # after what a power cut may have left
    return True


def _first_answers(folder: Path) -> dict[tuple[str, str, str], int]:
    """Return the first answer of every reader to each question, by lesson, question and reader."""
    path = _answers(folder)
    if not path.exists():
        return {}
    first: dict[tuple[str, str, str], int] = {}
    for line in read_regular(path).decode(errors="replace").splitlines():
        try:
            lesson, question, choice, reader = json.loads(line)
            first.setdefault((str(lesson), str(question), str(reader)), int(choice))
        except (ValueError, TypeError):
            continue  # a line that a power cut left incomplete
    return first


def read_answers(folder: Path) -> dict[tuple[str, str], Counter[int]]:
    """Count the first answers of every reader, by lesson and question."""
    counts: dict[tuple[str, str], Counter[int]] = {}
    for (lesson, question, _reader), choice in _first_answers(folder).items():
        counts.setdefault((lesson, question), Counter())[choice] += 1
    return counts


def counted_readers(folder: Path) -> list[str]:
    """Return the random names of the readers whose answers are counted."""
    return sorted({reader for _lesson, _question, reader in _first_answers(folder)})


def answers_csv(folder: Path, attempts: Iterable[tuple[str, str, bool, str, str, str]] = ()) -> str:
    """Return the first answers of a class as a CSV table: reader, lesson, question, choice from 1 on, and correct.

    Choices are numbered as a lesson shows them. A solved task is a row without a choice, and so is an attempt at it.

    Args:
        folder: The folder of runs.
        attempts: Reader, lesson, whether the task was solved then, when, what was tried and what came out.
    """
    right = {lesson.id: {**right_choices(lesson), TASK: SOLVED} for lesson in course()}
    orders = {lesson.id: choice_orders(lesson) for lesson in course()}

    def place(lesson: str, question: str, choice: int) -> int:
        order = orders.get(lesson, {}).get(question, ())
        return order.index(choice) + 1 if choice in order else choice + 1

    file = io.StringIO()
    write_rows(file, [("reader", "lesson", "question", "choice", "correct", "when", "tried", "outcome"), *(
        (reader, lesson, question, "" if question == TASK else place(lesson, question, choice),
         int(right.get(lesson, {}).get(question) == choice), "", "", "")
        for (lesson, question, reader), choice in sorted(_first_answers(folder).items())),
        *((reader, lesson, "attempt", "", int(is_solved), *told) for reader, lesson, is_solved, *told in attempts)])
    return file.getvalue()


def record_links(folder: Path, text: str) -> int:
    """Add the answers of links that students copied from the course, also from an exported one.

    Args:
        folder: The folder of runs.
        text: Text that holds the links; anything else in it is ignored.

    Returns:
        How many answers were recorded.
    """
    recorded = 0
    for reader, answers in _LINK.findall(text):
        for lesson, before, after, task in _LINKED.findall(answers):
            for question, choice in (("before", before), ("after", after), (TASK, task)):
                recorded += choice.isdigit() and record_answer(folder, lesson, question, int(choice), reader)
    return recorded


def right_choices(lesson: Lesson) -> Mapping[str, int]:
    """Return the number of the right answer to each question of a lesson."""
    found = re.findall(r"^  (before|after): \{.*?^    right: (\d+),", lesson.script, re.MULTILINE | re.DOTALL)
    return {question: int(choice) for question, choice in found}


def choice_orders(lesson: Lesson) -> Mapping[str, list[int]]:
    """Return the choices of each question of a lesson in the order in which they are shown."""
    found = re.findall(r"^  (before|after): \{.*?^    right: \d+,(?:\n    order: (\[.*?\]),)?", lesson.script,
                       re.MULTILINE | re.DOTALL)
    return {question: json.loads(order) if order else [0, 1, 2] for question, order in found}


def remove_reader(folder: Path, reader: str) -> None:
    """Delete the answers of one reader, such as a teacher who tried the lessons."""
    path = _answers(folder)
    if not path.exists() or not is_reader(reader):
        return
    lines = read_regular(path).decode(errors="replace").splitlines()
    replace_text(path, "\n".join(line for line in lines if f'"{reader}"' not in line))


def clear_answers(folder: Path) -> None:
    """Delete the answers of the class."""
    _answers(folder).unlink(missing_ok=True)


def _answers(folder: Path) -> Path:
    return folder / "lessons" / "answers.jsonl"
