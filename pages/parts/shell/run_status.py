"""Titles, states and progress of runs."""

from __future__ import annotations

import html
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime
from functools import lru_cache
from itertools import takewhile
from typing import Any

import streamlit as st

from udml_core.base.errors import UserError, counted, duration
from udml_core.base.spreadsheets import JOINT
from udml_core.methods import METHODS
from udml_core.results.embedding_words import words_of
from udml_core.runs import Run, Spec, list_runs, runs_folder
from udml_core.runs.run_comparison import differing_settings, settings_of
from udml_core.runs.search import FROZEN
from udml_core.runs.tasks import ADVICE, Status, Task
from udml_core.work import jobs
from udml_core.work.jobs.advising import is_trial

from .setting_words import setting_words

ICONS = {"waiting": ":material/hourglass_empty:", "running": ":material/autorenew:", "done": ":material/check_circle:",
         "failed": ":material/error:", "stopped": ":material/stop_circle:", "interrupted": ":material/power_off:"}
METHOD_TITLES = {method.card.name: method.card.title for method in METHODS}
SUPERVISION = {method.card.name: method.card.supervision for method in METHODS}
MOST_SETTINGS = 3
"""Differing settings that name a run."""
LEGIBLE = 30
"""Characters of a title that boxes and tables always show."""
SHORTEST = 8
"""Least number of characters at the beginning of a title whose middle is left out."""
SEPARATORS = (", ", " · ", " ", "-", "_")
"""Where a title is divided, if possible before a setting."""
EXAMPLE = "Example: "
"""The beginning of the name of a run that comes with the app."""
MARKDOWN = "\\`*_[]<>$~:#&"
BLOCK = re.compile(r"^(\d{1,9})(?=[.)])|^(?=[-+=])")
"""What makes the beginning of a text an item of a list, or the line above it a heading."""
JOINED = re.compile(r"(?<=http)(?=s?\\:)|(?<=ww)(?=w\.)|(?=@)|(?<=:)(?=material/|streamlit\\:)"
                    r"|(?<!\S)(?=(?:\\<-\\>|-\\>|\\<-|--|\\[<>~]=)(?!\S))", re.IGNORECASE)
"""Places in an escaped text where a joint keeps an address from becoming a link, a name an icon and signs an arrow."""
SPACES = re.compile(r"[^\S\u00a0]+")
"""Spaces and line breaks, but not a space that divides no line."""
UNSEEN = "position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)"
"""Style of text that only screen readers present."""


def hyperparameters(run: Run) -> dict[str, Any]:
    """Return a run's hyper-parameters.

    Returns:
        The hyper-parameters; the stored values if this version does not know the method or its fields.
    """
    try:
        return run.spec().build_method().model_dump()
    except UserError:
        return run.spec().fields


def title_of(spec: Spec, with_dataset: bool = True) -> str:
    """Describe a run's settings in full; `run_titles` names it.

    Returns:
        Method, data set, hyper-parameters that differ from the defaults, seed and parent run.
    """
    fields = spec.changed_fields() if spec.method in METHOD_TITLES else spec.fields
    changed = ", ".join(setting_words(name, value, spec.method) for name, value in fields.items())
    parts = [_method_title(spec),
             f"on {spec.dataset_title}" if with_dataset else "",
             f"({changed})" if changed else "", f"seed {spec.seed}" if spec.seed else "",
             f"continuing {spec.starts_from[-6:]}" if spec.starts_from else ""]
    return " ".join(part for part in parts if part)


def run_title(run: Run) -> str:
    """Return the name of a run; see `run_titles`, which names many runs faster."""
    return run_titles([run])[run.id]


def run_titles(runs: Sequence[Run]) -> dict[str, str]:
    """Return the names of runs by id. A run has one short name, the same on every page.

    It is the name that the user gave the run, else method and data set. An example's begins with "Example: ", and that
    of a training that a race started says so, so that a later race changes no name of the user's own runs. Runs with
    equal names, listed here or not, also have the settings in which they differ, after the time if that is needed.
    """
    known = {run.id: run for run in [*list_runs(runs_folder()), *runs]}
    titles = _titles_of_all(tuple(known.values()), tuple(map(_plain_title, known.values())), datetime.now().date())
    return {run.id: titles[run.id] for run in runs}


def group_titles(groups: Sequence[Sequence[Run]]) -> list[str]:
    """Return a name for each group of runs that differ only in the seed: a single run's own, else one without seed."""
    first = [members[0] for members in groups]
    shared = tell_apart(first, {run.id: _plain_title(run) for run in first}, without=("seed",))
    own = run_titles(first)
    titles = tell_apart(first, {members[0].id: (own if len(members) == 1 else shared)[members[0].id]
                                for members in groups}, without=("seed",))
    return [titles[run.id] for run in first]


def search_title(run: Run) -> str:
    """Return what the search with a run's embedding is called: its method, or the plain search without training."""
    return words_of("plain").title if run.spec().method == FROZEN else method_title(run)


def _plain_title(run: Run) -> str:
    """Return a run's name without what tells it apart from others."""
    raced = " (race)" if run.spec().method != FROZEN and is_trial(run) else ""
    title = run.notes().name or f"{search_title(run)} on {run.spec().dataset_title.split(',')[0]}{raced}"
    return f"{EXAMPLE}{title}" if run.is_example else title


@lru_cache(maxsize=4)
def _titles_of_all(runs: tuple[Run, ...], titles: tuple[str, ...], today: date) -> dict[str, str]:
    """Tell runs apart once a day, because a page asks for names many times, and settings never change."""
    return tell_apart(runs, {run.id: title for run, title in zip(runs, titles, strict=True)}, today=today)


def tell_apart(runs: Sequence[Run], titles: Mapping[str, str], without: Collection[str] = (),
               today: date | None = None) -> dict[str, str]:
    """Add to equal titles the settings in which their runs differ, or the time and then the settings.

    A title stays legible where a box cuts its end: where settings alone do not tell the runs apart within `LEGIBLE`
    characters, the time of the start comes first, else the end of the id.

    Args:
        runs: The runs.
        titles: Their titles by id.
        without: Settings that name no run.
        today: The day whose runs are named without a date; the current day if None.
    """
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(titles[run.id], []).append(run)
    named: dict[str, str] = {}
    for title, alike in groups.items():
        settings = [", ".join(words) for words in _differing_words(alike, without)]
        joined = [f"{title}, {words}" if words else title for words in settings]
        if len({name[:LEGIBLE] for name in joined}) < len(alike):
            is_told = len(set(settings)) == len(alike)
            starts = _differing_starts([run.id for run in alike], today or datetime.now().date(), is_told)
            joined = [" · ".join(filter(None, (title, *parts))) for parts in zip(starts, settings, strict=True)]
        named |= {run.id: name for run, name in zip(alike, joined, strict=True)}
    return keep_differences(named)


def _differing_starts(run_ids: Sequence[str], today: date, is_told: bool) -> list[str]:
    """Return when runs started, to the second if need be, as their ids say.

    If they started together: the ends of their ids, or nothing where their settings tell them apart already.
    """
    for has_seconds in (False, True):
        starts = [_start_words(run_id, has_seconds, today) for run_id in run_ids]
        if all(starts) and len(set(starts)) == len(starts):
            return starts
    return ["" if is_told else run_id[-6:] for run_id in run_ids]


def _start_words(run_id: str, has_seconds: bool, today: date) -> str:
    """Return when a run started, as its id says, with the date unless it is today; empty for an id without a time."""
    try:
        started = datetime.strptime(run_id[:15], "%Y%m%d-%H%M%S")
    except ValueError:
        return ""
    time = started.strftime("%H:%M:%S" if has_seconds else "%H:%M")
    return time if started.date() == today else f"{started:%b} {started.day} {time}"


def keep_differences(titles: Mapping[str, str]) -> dict[str, str]:
    """Leave out the middle of long titles with the same beginning: boxes and tables cut the ends, which differ.

    Args:
        titles: Titles by id.
    """
    beginnings: dict[str, list[str]] = {}
    for title in titles.values():
        beginnings.setdefault(title[:LEGIBLE], []).append(title)
    shown = {run_id: _without_middle(title, alike) if len(alike := beginnings[title[:LEGIBLE]]) > 1 else title
             for run_id, title in titles.items()}
    # Two groups of titles can have equal ends; a long title is better than an ambiguous title.
    return shown if len(set(shown.values())) == len(set(titles.values())) else dict(titles)


def _without_middle(title: str, alike: Sequence[str]) -> str:
    """Return the beginning of a title, and what follows the common beginning of titles."""
    common = "".join(letters[0] for letters in takewhile(lambda letters: len(set(letters)) == 1,
                                                         zip(*alike, strict=False)))
    ends = [common.rfind(separator) + len(separator) for separator in SEPARATORS if separator in common]
    # A setting such as α 15° stays whole, if that does not bring a long common part to the front.
    end = next((end for end in ends if end > len(common) - 2 * LEGIBLE // 3), len(common))
    if not title[end:]:
        return title
    beginning = title[:max(SHORTEST, LEGIBLE - len(title[end:]) - len("… "))]
    return f"{beginning.rstrip(' ,·-_')}… {title[end:]}"


def _differing_words(runs: Sequence[Run], without: Collection[str]) -> list[list[str]]:
    """Return for each run the first settings in which the runs differ, in words; hyper-parameters come first."""
    if len(runs) == 1:
        return [[]]
    fields = {name for run in runs for name in run.spec().fields}
    differing = differing_settings([settings_of(run) for run in runs])
    shown = [name for name, values in differing.items() if name not in without
             and all(value is None or isinstance(value, str | int | float) for value in values)]
    shown = sorted(shown, key=lambda name: name not in fields)[:MOST_SETTINGS]
    return [[setting_words(name, differing[name][position], run.spec().method) for name in shown
             if differing[name][position] is not None] for position, run in enumerate(runs)]


def method_title(run: Run) -> str:
    """Return the title of a run's method, such as RPML, without its hyper-parameters."""
    return _method_title(run.spec())


def _method_title(spec: Spec) -> str:
    return METHOD_TITLES.get(spec.method, f"{spec.method} (unknown method)")


def escaped(text: str) -> str:
    """Return a text from outside as Markdown that shows it as it is, in one line, without spaces around it.

    Signs are escaped. Addresses, names of icons and arrows would be replaced even so: a joint without width divides
    them.
    """
    return BLOCK.sub(r"\1\\", _plain(SPACES.sub(" ", text).strip()))


def escaped_message(message: str) -> str:
    """Return a message, which may quote a text from outside, as Markdown; code between backticks stays code."""
    parts = message.split("`")
    if len(parts) % 2 == 0 or not all(parts[1::2]):
        return escaped(message)
    plain = "".join(f"`{part}`" if position % 2 else _plain(part) for position, part in enumerate(parts))
    return BLOCK.sub(r"\1\\", plain)


def _plain(text: str) -> str:
    return JOINED.sub(JOINT, "".join(f"\\{sign}" if sign in MARKDOWN else sign for sign in text))


def state_line(run: Run, status: Status) -> str:
    """Describe a run's state in one line: queue position, progress, or why it ended."""
    match status.state:
        case "waiting":
            if jobs.engine_of(run) != "local":
                return f"Waiting: {jobs.place_in_queue(run)}."
            ahead = jobs.queue_position(run, runs_folder())
            return (f"Waiting for the device: {counted(ahead, 'run')} ahead in the queue." if ahead else
                    "Starting: loading the libraries.")
        case "running" if status.is_paused:
            return f"Paused in epoch {min(status.epoch + 1, status.epochs)} of {status.epochs}. Continue it in Lab."
        case "running":
            left = status.seconds_left
            is_training = status.phase == "training"
            parts = [f"Epoch {min(status.epoch + 1, status.epochs)} of {status.epochs}" if is_training
                     else status.phase.capitalize(),
                     "" if left is None else f"about {duration(left)} left{' in this step' * (not is_training)}"]
            return ", ".join(part for part in parts if part)
        case "done" | "failed" | "stopped" | "interrupted":
            return " ".join(part for part in (status.message, ADVICE[status.state]) if part)


def progress_of(status: Status) -> float:
    """Return the finished share of the training, or of the phase before or after it."""
    if status.phase == "training" and status.epochs:
        return min(1.0, (status.epoch + status.share) / status.epochs)
    return min(1.0, status.share)


def live_panel(run: Run, key: str) -> None:
    """Show a waiting or running run with progress, time left and a stop button."""
    status = run.status()
    with st.container(border=True):
        left, right = st.columns([5, 1], vertical_alignment="center")
        with left:
            st.markdown(f"{ICONS[status.state]} **{escaped(run_title(run))}**")
            line = state_line(run, status)
            st.progress(progress_of(status) if status.state == "running" else 0.0, escaped_message(line))
            st.html(f'<div role="status" aria-live="polite" style="{UNSEEN}">{html.escape(line)}</div>')
        with right:
            stop_button(run, key, "Stop", "Finished epochs are kept, and the run can be resumed.")


def stop_button(run: Task, key: str, label: str, help_text: str) -> None:
    """Show the button that stops a live run or analysis."""
    if st.button(label, icon=":material/stop:", key=f"{key}-stop-{run.id}", width="stretch", help=help_text):
        with st.spinner("Stopping …"):
            jobs.stop(run)
        st.rerun(scope="app")


def since(status: Status) -> str:
    """Return how long a run took, or an empty text if it has not ended."""
    if status.started is None or status.finished is None or status.finished < status.started:  # the clock went back
        return ""
    return duration(status.finished - status.started)
