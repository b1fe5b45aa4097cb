"""The embeddings that the page Search searches side by side; the address parameter `compare` lists them.

An embedding is named by `frozen`, `initial`, `final`, the number of an epoch, the id of a refinement, or the id of
another run on the same data set, whose embedding after training is meant.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from udml_core.exploration.race_figures import recipe_words
from udml_core.numerics.refinement import Recipe
from udml_core.results.embedding_words import words_of
from udml_core.runs import Run, list_runs, runs_folder
from udml_core.runs.search import FINAL, FROZEN, Frame, Retrieval, finished_refinements, frame_words
from udml_core.runs.used import used_on

from ..draw.palette import AFTER, BEFORE, REFINED
from ..refine.cards import PARAMETER
from ..shell.address import BETWEEN, VISIT, write_address
from ..shell.cached import load_retrieval
from ..shell.run_status import method_title, run_titles

MOST = 4
LOOK = "search-look"
"""Session key, with a run's id, of the parameters of the embeddings that Search shows of the run."""
SHOWN = ("compare", "refined", PARAMETER)
"""These parameters."""
MAIN = (FROZEN, "initial", "final")
COLORS = {FROZEN: BEFORE, "initial": BEFORE}


@dataclass(frozen=True)
class Column:
    """One of the embeddings that are searched side by side.

    Attributes:
        name: The name in the address.
        title: The heading.
        color: The color of this kind of embedding on every page.
        retrieval: The search of its run.
        frame: The embedding.
    """

    name: str
    title: str
    color: str
    retrieval: Retrieval
    frame: Frame

    @property
    def words(self) -> str:
        """The title within a sentence."""
        is_sentence = self.name in MAIN
        return self.title[0].lower() + self.title[1:] if is_sentence else self.title


def choose_embeddings(retrieval: Retrieval) -> list[Column]:
    """Choose up to four embeddings to search side by side."""
    titles = _titles(retrieval)
    key = _key(retrieval)
    chosen = st.multiselect(
        "Searches side by side", list(titles), _chosen_in_address(retrieval, titles), key=key, max_selections=MOST,
        format_func=titles.__getitem__, placeholder="Choose searches to compare", label_visibility="collapsed",
        on_change=lambda: _write_chosen(retrieval, st.session_state[key]))
    return [_column(retrieval, name, titles[name]) for name in chosen]


def _key(retrieval: Retrieval) -> str:
    """Return the key of the widget that chooses embeddings."""
    return f"compare-{retrieval.run.id}"


def keep_look(run: Run) -> None:
    """Keep what the search of a run shows for the next visit in this session; at the begin of a visit show it again.

    An address that says what to show decides.
    """
    kept, begun = f"{LOOK}-{run.id}", f"{VISIT}{LOOK}-{run.id}"
    if begun not in st.session_state and not any(name in st.query_params for name in SHOWN):
        st.query_params.update(st.session_state.get(kept, {}))
    st.session_state[begun] = True
    st.session_state[kept] = {name: st.query_params[name] for name in SHOWN if name in st.query_params}


def hide_embedding(retrieval: Retrieval, name: str) -> None:
    """Leave out an embedding that is shown, or show the run's own instead; called before the page runs again."""
    shown = [other for other in st.session_state.get(_key(retrieval), []) if other != name]
    show_alone(retrieval, *(shown or [other for other in _first_names(retrieval) if other != name] or [name]))


def show_embedding(retrieval: Retrieval, name: str) -> None:
    """Show a further embedding side by side; called before the page runs again."""
    key = _key(retrieval)
    shown = list(st.session_state.get(key, default_names(retrieval)))
    show_alone(retrieval, *dict.fromkeys([*shown[:MOST - 1], name]))


def show_alone(retrieval: Retrieval, *names: str) -> None:
    """Show these embeddings alone; called before the page runs again."""
    st.session_state[_key(retrieval)] = list(names)
    _write_chosen(retrieval, list(names))


def default_names(retrieval: Retrieval) -> list[str]:
    """Return the embedding that the user chose for the images, if it is the run's; else that after training beside
    that before it.
    """
    used = used_on(retrieval.spec.dataset, list_runs(runs_folder()))
    return [used[1]] if used is not None and used[0].id == retrieval.run.id else _first_names(retrieval)


def _first_names(retrieval: Retrieval) -> list[str]:
    """Return the embedding after training beside that before it."""
    return list(dict.fromkeys((retrieval.before if retrieval.is_changed else FINAL, FINAL)))


def _chosen_in_address(retrieval: Retrieval, titles: dict[str, str]) -> list[str]:
    """Return the embeddings that the address names.

    Links of earlier versions name a refinement in the parameter `refined`.
    """
    default = default_names(retrieval)
    if st.query_params.get("refined") in titles:
        default = ["final", st.query_params["refined"]]
    return list(dict.fromkeys(name for name in _linked() if name in titles))[:MOST] or default


def embedding_in_view(retrieval: Retrieval) -> str:
    """Return the run's embedding that the search shows last, such as the refinement that was just opened."""
    names = _chosen_in_address(retrieval, own_titles(retrieval))
    return next((name for name in reversed(names) if name in own_titles(retrieval)), "final")


def _linked() -> list[str]:
    """Return the names in the address, known or not."""
    return [name for name in st.query_params.get("compare", "").split(BETWEEN) if name]


def _write_chosen(retrieval: Retrieval, names: list[str]) -> None:
    write_address("refined", "")
    write_address("compare", BETWEEN.join(names), BETWEEN.join(default_names(retrieval)))


def own_titles(retrieval: Retrieval) -> dict[str, str]:
    """Return the titles of the run's embeddings of all images, and of its refinements, by name."""
    recipes = {analysis.id: analysis.spec().recipe for analysis in finished_refinements(retrieval.run)}
    words = [recipe_words(Recipe.parse(str(recipe))) for recipe in recipes.values()]
    refined = {name: refined_title(retrieval.run, f"{own}{_number(own, words[:at])}")
               for at, (name, own) in enumerate(zip(recipes, words, strict=True))}
    main = {name: frame_words(name, retrieval.run).capitalize() for name in retrieval.frames.names()
            if name in MAIN and (name != "initial" or retrieval.is_changed)}
    is_plain = retrieval.spec.method == FROZEN
    if is_plain:
        main = {FINAL: main[FINAL]}
    if retrieval.dataset.labels is None and (name := FINAL if is_plain else FROZEN) in main:
        main[name] = words_of("plain").title
    return main | refined


def refined_title(run: Run, steps: str) -> str:
    """Return the title of a refinement of a run's embedding: its method, unless nothing was trained, and the steps."""
    return f"{words_of('refined').title}: {steps}" if run.spec().method == FROZEN else (
        f"{method_title(run)}, then {steps}")


def _number(words: str, before: list[str]) -> str:
    """Return a number in parentheses if recipes before have the same words, because only a finer value differs."""
    return f" ({before.count(words) + 1})" if words in before else ""


def _titles(retrieval: Retrieval) -> dict[str, str]:
    """Return the titles of all embeddings that can be searched, by name; the many epochs come last."""
    stored, kept = retrieval.frames.names(), retrieval.run.kept_epoch()
    others = _other_runs(runs_folder(), retrieval.spec.fingerprint)
    if any(name not in others and (runs_folder() / name).is_dir() for name in _linked()):
        _other_runs.clear()  # the link names a run that may have ended since the last look
        others = _other_runs(runs_folder(), retrieval.spec.fingerprint)
    others.pop(retrieval.run.id, None)
    return own_titles(retrieval) | others | {
        name: words_of(name).title + (f", {words_of('final').sentence}" if name == str(kept) else "")
        for name in stored if name not in MAIN}


@st.cache_data(ttl="10s", max_entries=8, show_spinner=False)
def _other_runs(folder: Path, fingerprint: str) -> dict[str, str]:
    """Return the titles of the finished runs on a data set, read from the disk at most every ten seconds."""
    return run_titles([run for run in list_runs(folder)
                       if run.stored_status().can_search and run.spec().fingerprint == fingerprint])


def _column(retrieval: Retrieval, name: str, title: str) -> Column:
    refinements = {analysis.id for analysis in finished_refinements(retrieval.run)}
    if name in refinements or name in retrieval.frames.names():
        is_plain = name == FINAL and retrieval.spec.method == FROZEN
        color = REFINED if name in refinements else BEFORE if is_plain else COLORS.get(name, AFTER)
        return Column(name, title, color, retrieval, retrieval.frame(name))
    other = load_retrieval(next(run for run in list_runs(runs_folder()) if run.id == name))
    return Column(name, title, AFTER, other, other.frame("final"))
