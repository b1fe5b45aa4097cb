"""The line about a race or a training at the end of the sidebar: its progress, then its end until it is seen."""

from __future__ import annotations

import html
from dataclasses import dataclass
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from udml_core.base.errors import duration
from udml_core.exploration.race_clock import left_words
from udml_core.runs import runs_folder
from udml_core.runs.analyses import plan_analysis
from udml_core.runs.analyses.kinds.advice import WAITING_WORDS, Advice
from udml_core.runs.tasks import State, Status
from udml_core.work import jobs
from udml_core.work.jobs.live_races import LiveRace, LiveTraining, live_races, live_trainings

from .cached import dataset_at_hand
from .run_status import UNSEEN, escaped, method_title, progress_of
from .user_errors import show_user_errors
from .views import view_link

LAB = "train"
"""The view that starts and shows trainings."""
FOLLOWED, ENDED = "app-races-followed", "app-race-ended"
"""Session keys: what ran when a page was drawn last, and what is said of the last race or training that ended."""
LOOKS = "2s"
"""Time between two looks at a race."""
ICON, TRAINING_ICON, UNSEEN_END = ":material/trophy:", ":material/model_training:", ":material/new_releases:"
Live = LiveRace | LiveTraining
"""What the line follows."""
ENDS: dict[State, str] = {"stopped": "was stopped", "interrupted": "was interrupted"}


@dataclass(frozen=True)
class Ended:
    """What is said of a race or a training that ended.

    Attributes:
        words: A sentence.
        live: The race or training.
    """

    words: str
    live: Live


def race_place() -> DeltaGenerator:
    """Return the place of the line, which app.css keeps at the end of the sidebar, where it moves nothing."""
    return st.sidebar.container(key="race-line", gap=None)


def show_race_line(place: DeltaGenerator) -> None:
    """Show the progress of a race, else of a training, or that it has ended; nothing without both.

    The page that shows the race or training itself starts it, and has no line: it looks for them, other pages look in
    a while.

    Args:
        place: See `race_place`.
    """
    root = runs_folder()
    followed: list[Live] = st.session_state.get(FOLLOWED, [])
    if _shows_races() or st.session_state.get("page") == LAB:
        _races_now.clear(root)
    live = [race for race in _races_now(root) if race.goes_on()]
    st.session_state[FOLLOWED] = [*live, *(race for race in followed if race not in live)]
    _forget_what_was_said()
    _note_ends()
    shown = [race for race in st.session_state[FOLLOWED] if not _is_shown(race)]
    if shown or ENDED in st.session_state:
        with place:
            st.fragment(_follow, run_every=LOOKS if shown else None)()


@st.cache_data(ttl="5s", max_entries=4, show_spinner=False)
def _races_now(root: Path) -> list[Live]:
    """Return the races, then the trainings, that run or wait. It is cached because all runs are looked through."""
    return [*live_races(root), *live_trainings(root)]


@show_user_errors()
def _follow() -> None:
    """Draw the line."""
    _note_ends()
    live = st.session_state[FOLLOWED]
    shown = next((race for race in live if not _is_shown(race)), None)
    if shown is not None:
        _show_progress(shown, len(live) - 1)
    elif (ended := st.session_state.get(ENDED)) is not None:
        _link(ended.live, escaped(ended.words), _opens(ended.live), UNSEEN_END)
        st.html(f'<div role="status" style="{UNSEEN}">{html.escape(ended.words)}</div>')


def _note_ends() -> None:
    """Follow what has ended no longer, and say its end in a message, unless its own page says it."""
    followed: list[Live] = st.session_state[FOLLOWED]
    live = [race for race in followed if race.goes_on()]
    for race in followed:
        if race not in live and race.run.has_spec() and not _is_shown(race):
            st.session_state[ENDED] = ended = Ended(_end_words(race), race)
            st.toast(escaped(ended.words), icon=_icon(race), duration="long")
    st.session_state[FOLLOWED] = live


def _forget_what_was_said() -> None:
    """Forget the end of what the user looks at, or whose run was removed."""
    ended: Ended | None = st.session_state.get(ENDED)
    if ended is not None and (_is_shown(ended.live) or not ended.live.run.has_spec()):
        del st.session_state[ENDED]


def _shows_races() -> bool:
    """Return whether the page shows races itself."""
    return st.session_state.get("page") == "data" and st.query_params.get("view") == "advice"


def _is_shown(race: Live) -> bool:
    """Return whether the page shows the races of the same images, or the training, itself."""
    if isinstance(race, LiveTraining):
        return st.session_state.get("page") == LAB and st.query_params.get("live") == race.run.id
    return _shows_races() and st.query_params.get("dataset") == race.run.spec().dataset


def _show_progress(race: Live, others: int) -> None:
    """Show how far a race or a training is, with a link to it."""
    status = race.status()
    more = f" {others} more wait{'s' * (others == 1)}." if others else ""
    if isinstance(race, LiveTraining):
        label, words, share = f"Training {training_title(race)}", training_words(race, status), progress_of(status)
    else:
        label, words = "Finding the best search", progress_words(race, status, others)
        share = status.share if race.started is not None else 0.0
    _link(race, label, f"{_opens(race)}{more}")
    st.html(f'<div class="race-line">{html.escape(words)}'
            f'<progress aria-label="Finished" value="{min(1.0, share):.3f}"></progress></div>')


def training_title(training: LiveTraining) -> str:
    """Return what is trained on what, in Markdown."""
    return f"{method_title(training.run)} on {escaped(training.run.spec().dataset_title)}"


def training_words(training: LiveTraining, status: Status) -> str:
    """Return how far a training is, in a few words: the time left, else the finished share, or what it waits for.

    Args:
        training: The training.
        status: Its status.
    """
    if status.state == "waiting":
        return "waits for another run"
    left = jobs.training_left(training.run.spec(), status)
    if status.is_paused:
        return "paused"
    if left is not None:
        return f"about {duration(left)} left"
    return f"{100 * progress_of(status):.0f} %" if status.phase == "training" else status.phase or "starting"


def progress_words(race: LiveRace, status: Status, others: int = 0) -> str:
    """Return how far a race is, in a few words: the finished share and the time left, or what it waits for.

    Args:
        race: The race.
        status: Its status, or that of its features while it waits for them.
        others: Number of the other races that run or wait.
    """
    if not race.analysis.has_spec():
        return f"preparing, {100 * min(1.0, status.share):.0f} %" if status.share else "preparing"
    if status.state == "waiting":
        return "waits for another race" if others else "starting"
    if status.phase == WAITING_WORDS:
        return "waits while another run trains"
    return ", ".join(filter(None, (f"{100 * min(1.0, status.share):.0f} %", left_words(status.phase) or "starting")))


def end_of(state: State) -> str:
    """Return how a race ended that did not finish, after its name."""
    return ENDS.get(state, f"has {state}")


def _end_words(race: Live) -> str:
    """Say that a race has ended, and what it found, or that a training has ended, in a sentence."""
    if isinstance(race, LiveTraining):
        state = race.status().state
        return f"The training {'has ended' if state == 'done' else end_of(state)}: {method_title(race.run)}."
    from udml_core.exploration.search_names import plain_name  # late, as most visits see no race
    from udml_core.work.jobs.concluding import conclusion_of

    state = race.status().state
    if not race.analysis.has_spec():
        return "The race did not begin" + ("." if state == "done" else f": the preparation {end_of(state)}.")
    if state != "done":
        return f"The race {end_of(state)}."
    of = conclusion_of(race.analysis, dataset_at_hand(race.run.spec().dataset))
    if of.use is not None:
        return f"The race has ended: the best search is {plain_name(of.use.setup, of.race.start)}."
    return f"The race has ended: {of.headline[:1].lower()}{of.headline[1:].replace(': ', ', ', 1)}"


def _icon(race: Live) -> str:
    return TRAINING_ICON if isinstance(race, LiveTraining) else ICON


def _opens(race: Live) -> str:
    """Return what the link opens, in a sentence."""
    title = escaped(race.run.spec().dataset_title)
    return f"Opens the training on {title} on the page Lab." if isinstance(race, LiveTraining) else (
        f"Opens the race for {title} on the page Data.")


def _link(race: Live, label: str, words: str, icon: str = "") -> None:
    """Show a link to a race on the page Data, or to a training on the page Lab.

    A race with judges of its own, which the choices of that page do not lead to, is found among the others there.
    """
    if isinstance(race, LiveTraining):
        view_link(LAB, label=label, icon=icon or TRAINING_ICON, help=words, width="stretch",
                  query_params={"dataset": race.run.spec().dataset, "method": race.run.spec().method,
                                "live": race.run.id})
        return
    kind = race.kind
    is_usual = race.spec == plan_analysis(Advice, budget=kind.budget, serves=kind.serves)
    choices = {"budget": f"{kind.budget:g}", "serves": kind.serves} if is_usual else {}
    view_link("data", label=label, icon=icon or ICON, help=words, width="stretch",
              query_params={"dataset": race.run.spec().dataset, "view": "advice", **choices})
