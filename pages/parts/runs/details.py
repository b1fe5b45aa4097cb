"""One run: its verdict, state, actions, measures, settings, notes and log."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

import streamlit as st

from udml_core.base.errors import byte_words, counted, duration
from udml_core.data.speed import measured_speed
from udml_core.numerics.measures import measure_of
from udml_core.results.embedding_words import words_of
from udml_core.runs import Run, runs_folder
from udml_core.runs.analyses import plan_analysis
from udml_core.runs.analyses.kinds.exact import ExactEvaluation
from udml_core.runs.command import command_limits, command_of
from udml_core.runs.examples import point_of
from udml_core.runs.notes import LONGEST_NAME, LONGEST_NOTE, MOST_TAGS, Notes
from udml_core.runs.opinions import JUDGED
from udml_core.runs.run_comparison import settings_of
from udml_core.runs.search import FROZEN, TRAINED, features_words
from udml_core.runs.tasks import LIVE_STATES, Status
from udml_core.runs.verdict import has_labels, standing, verdict
from udml_core.work import jobs
from udml_core.work.jobs.estimate import evaluation_kind
from udml_core.work.jobs.raced import races_from

from ..draw.result_bars import show_bars
from ..draw.tables import RELATIVE, data_table, evaluation_table
from ..shell.analyses import request_analysis, show_analysis_progress
from ..shell.cached import dataset_of
from ..shell.pools import images_of
from ..shell.run_picker import title_in_use
from ..shell.run_status import ICONS, escaped, escaped_message, method_title, since, state_line, title_of
from ..shell.user_errors import show_user_errors
from ..shell.views import open_view, view_link
from .advised import show_advised_actions
from .assigned import show_assigned
from .opinion import says_something, show_opinion
from .races import show_figures
from .trash import delete_menu

EXACT = plan_analysis(ExactEvaluation)
LEAST_SHOWN = 0.1
"""Seconds from which the time of a step is shown."""
PERCENTAGE = re.compile(r"[\d.]+\s%")
LINEAR = ("pca", "whiten")
"""Methods that are linear steps of the frozen features."""


def show_header(run: Run) -> None:
    """Show a run's title and its verdict: from labels if it has them, else without labels.

    What an example shows is left out where the verdict has all its figures.
    """
    status, spec = run.status(), run.spec()
    st.markdown(f"#### {ICONS[status.state]} {escaped(title_in_use(run))}")
    is_done = status.state == "done"
    evaluation, raw = run.evaluation() or {}, features_words(spec)
    judged = (verdict(method_title(run), evaluation or None, spec.method == FROZEN, raw)
              if is_done and is_labeled(run) else None)
    if (point := point_of(run)) and (judged is None or not has_figures(judged.sentence, point)):
        st.caption(escaped(point))
    if judged is not None and judged.rank in ("above", "between", "below"):
        show_bars(method_title(run), evaluation, spec, raw)
    elif judged is not None:
        st.markdown(judged.sentence)
    elif is_done:
        with show_user_errors():
            show_opinion(run)


def has_figures(sentence: str, other: str) -> bool:
    """Return whether a sentence has all percentages of another one."""
    return set(PERCENTAGE.findall(other)) <= set(PERCENTAGE.findall(sentence))


def is_labeled(run: Run) -> bool:
    """Return whether a finished run is judged by labels; a run without evaluation says that it has none."""
    evaluation = run.evaluation()
    return evaluation is None or has_labels(evaluation)


def show_actions(run: Run) -> None:
    """Show what can be done with a run in one line, the main action first, and why it ended early if it did."""
    status = run.status()
    broken = run.broken_result() if status.state == "done" else None
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="run-actions"):
        if broken or status.state in ("failed", "stopped", "interrupted"):
            if st.button("Resume", icon=":material/play_arrow:", key=f"resume-{run.id}", type="primary"):
                with show_user_errors():
                    jobs.resume(run)
                    st.rerun()
        elif status.can_search:
            is_advised = show_advised_actions(run)
            if st.button("Search with this run", icon=":material/image_search:", key=f"search-{run.id}",
                         type="secondary" if is_advised else "primary"):
                open_view("retrieval", {"run": run.id})
            view_link("explore", label="Explore", icon=":material/explore:", query_params={"run": run.id})
            _compare_with_example(run)
        view_link("train", label="Train a variant", icon=":material/content_copy:",
                  query_params={"like": run.id}, help="Opens Lab with every field of this run filled in.")
    show_notes(run)
    if broken:
        st.error(broken, icon=":material/error:")
    elif status.state == "failed":
        st.error(escaped_message(state_line(run, status)), icon=":material/error:")
        with st.expander("Last lines of the error trace"):
            st.code(run.error() or run.log_tail(), language=None)
    elif status.state in ("stopped", "interrupted"):
        st.warning(escaped_message(state_line(run, status)), icon=":material/pause_circle:")


def _compare_with_example(run: Run) -> None:
    """Link to the comparison with an example that has the same test images and other settings.

    An example of the same method comes first, then the best one. Only an example's data set is loaded, which comes with
    the app: the run's own may be gone.
    """
    spec, settings = run.spec(), settings_of(run)
    examples = [] if run.is_example else [
        example for example in jobs.examples_on(spec.fingerprint, runs_folder())
        if jobs.shares_test_images(spec, example, dataset_of(example)) and settings_of(example) != settings]
    example = max(examples, key=lambda example: (example.spec().method == spec.method,
                                                 standing(example.evaluation()).after or 0.0), default=None)
    if example is not None:
        view_link("compare", label="Compare with the example", icon=":material/compare:",
                     query_params={"runs": f"{run.id}.{example.id}"})


def show_overview(run: Run) -> None:
    """Show what judges without labels and assigned labels say of a run, and all its measures."""
    if run.status().state == "done":
        if is_labeled(run) and says_something(run):
            st.markdown(f"##### {JUDGED}")
            with show_user_errors():
                show_opinion(run)
        show_figures(races_from(run))
        show_assigned(run)
    evaluation = run.evaluation()
    if not evaluation:
        st.caption(f"The measures on the {images_of(run, 'test')} appear here when the run ends.")
        return
    if is_labeled(run):
        st.markdown("##### Measured with labels")
        _show_measures(run, evaluation)
    else:
        with st.expander("Figures of the embedding", icon=":material/table:"):
            st.caption("They need no labels, and do not say whether the search is better: the verdict above does.")
            _show_measures(run, evaluation)
    if sample_words(evaluation) and not run.is_example:
        show_analysis_progress(run, in_corner=False)
        request_analysis(run, EXACT, "Ask all test images", f"exact-{run.id}", exact_words(run, evaluation))


def _show_measures(run: Run, evaluation: Mapping[str, Any]) -> None:
    """Show all measures of a run in a table, and the images behind them."""
    shown, titles = _distinct(run, evaluation)
    table = evaluation_table({"": shown}, titles)
    data_table(table, width="stretch", height="content",
               column_config={"_index": st.column_config.TextColumn("Measure", width=300)})
    _explain_measures(table.index)
    hits = ("R@k: share of test images with a hit, an image of the same class, among the k nearest. "
            if any("recall@1" in measures for measures in evaluation.values()) else "")
    start = titles.get(FROZEN, "Frozen")
    st.caption(f"All measures on the {images_of(run, 'test')}.{sample_words(evaluation)}", help=(
        f"{hits}{start}: {run.spec().encoder.frozen_words}, without training. PCA has the dimension of the run's "
        "embedding, is compared by the same distance and needs no training: a run should exceed it."))


def sample_words(evaluation: Mapping[str, Any]) -> str:
    """Return how many test images were queries; empty if all were."""
    final = evaluation.get("final") or {}
    if not (asked := final.get("queries")):
        return ""
    margin = final.get("recall@1 margin")
    return (f" A sample of {asked:,.0f} of {final['images']:,.0f} is asked"
            + ("" if margin is None else f", so first result right is known to ± {margin:.1f} points")
            + ".")


def exact_words(run: Run, evaluation: Mapping[str, Any]) -> str:
    """Return what asking all test images takes, from the time that asking the sample took on this machine."""
    final, measured = evaluation["final"], measured_speed(evaluation_kind(run.spec()))
    expected = "" if measured is None else f" It takes about {duration(measured * final['images'] / final['queries'])}."
    return f"In the background. The figures replace the sample's.{expected}"


def _distinct(run: Run, evaluation: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the embeddings of an evaluation that differ, and the titles of these that no training made.

    Frozen features are not trained, and a linear step of them is computed at once.
    """
    method, titles = run.spec().method, {} if is_labeled(run) else {FROZEN: words_of("plain").title}
    if method == FROZEN:
        return {name: of for name, of in evaluation.items() if name not in TRAINED}, titles
    if method in LINEAR:
        left = {name: of for name, of in evaluation.items() if name != "initial"}
        return left, {"final": method_title(run)} | titles
    return dict(evaluation), titles


def _explain_measures(names: Collection[str]) -> None:
    """Say what the measures mean that compare an embedding with the frozen features."""
    if words := " ".join(f"**{measure.name}**: {measure.help}" for measure in map(measure_of, RELATIVE)
                         if measure.name in names):
        st.caption(words)


def show_settings(run: Run) -> None:
    """Show a run's settings, and the command that starts an equal run."""
    status, spec = run.status(), run.spec()
    took = f" · took {since(status)}" if since(status) else ""
    st.markdown(f"{escaped(title_of(spec))}")
    st.markdown(f"`{run.id}` · {spec.split} split · {spec.encoder.words} · {spec.device}{took}"
                + (f" · without {counted(spec.excluded.count, 'excluded image')}" if spec.excluded.count else ""))
    _show_memory(status)
    _show_times(status)
    st.code(command_of(spec), language="bash", wrap_lines=True)
    st.caption("This command starts an equal run. The button at the right end copies it."
               + (f" {limits}" if (limits := command_limits(spec)) else ""))


def _show_memory(status: Status) -> None:
    """Show the largest memory of each part of a run beside what was planned; nothing of runs of earlier versions."""
    parts = jobs.memory_by_part(status)
    if not parts:
        return
    words = [f"{part} {byte_words(measured) if measured else '–'} ({byte_words(planned) if planned else '–'})"
             for part, (planned, measured) in parts.items()]
    st.caption(f"Memory, measured (and planned): {' · '.join(words)}", help=(
        "The largest memory of the run's process in each part, with files that it reads, which the system can take "
        "back. Planned before the start from the number of images and of dimensions, and compared with the free "
        "memory."))


def _show_times(status: Status) -> None:
    """Show how long each step of a run took; nothing of runs of earlier versions."""
    if words := [f"{step} {seconds:.1f} s" for step, seconds in status.seconds.items() if seconds >= LEAST_SHOWN]:
        st.caption(f"Time: {' · '.join(words)}", help="Steps of less than a tenth of a second are left out.")


def show_files(run: Run, known_tags: list[str]) -> None:
    """Show the forms that change a run's notes and delete it, and its log."""
    status = run.status()
    if not run.is_example:
        notes_form(run, known_tags)
        delete_menu(run)
    else:
        st.caption("Examples come with the app: they cannot be named, annotated or deleted.")
    if log := run.log_tail(20 if status.state in LIVE_STATES else 200):
        st.caption("Log")
        st.code(log, language=None, height="content" if status.state in LIVE_STATES else 300)


def notes_form(run: Run, known_tags: list[str]) -> None:
    """Show the form that changes a run's name, note and tags."""
    notes = run.notes()
    with st.form(f"notes-{run.id}", border=False):
        name = st.text_input("Name", notes.name, max_chars=LONGEST_NAME, key=f"name-{run.id}",
                             placeholder=title_of(run.spec()), help="Shown wherever the run is named.")
        tags = st.multiselect("Tags", sorted({*known_tags, *notes.tags}), list(notes.tags), key=f"tags-{run.id}",
                              accept_new_options=True, max_selections=MOST_TAGS, placeholder="Type a tag, press Enter")
        note = st.text_area("Note", notes.note, max_chars=LONGEST_NOTE, key=f"note-{run.id}")
        if st.form_submit_button("Save"):
            with show_user_errors():
                run.write_notes(Notes.make(name, note, tuple(tags)))
                st.rerun(scope="app")


def show_notes(run: Run) -> None:
    """Show a run's tags and note as text, and whether the file was damaged."""
    notes = run.notes()
    if notes.problem:
        st.warning(escaped(notes.problem), icon=":material/warning:")
    if notes.tags:
        with st.container(horizontal=True, gap="small"):
            for tag in notes.tags:
                st.badge(tag, color="gray")
    if notes.note:
        st.text(notes.note)
