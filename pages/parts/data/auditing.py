"""The audit of a data set: its findings with galleries, and the list of excluded images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from udml_core.base.errors import counted
from udml_core.data.dataset import Dataset
from udml_core.data.encoders import EncoderSpec
from udml_core.data.given.duplicate_decisions import decisions_of
from udml_core.data.given.exclusions import can_undo, exclude, excluded_images
from udml_core.exploration.audit import (
    Audit,
    Findings,
    divided_splits,
    find_problems,
    first_audit,
    images_of,
    in_half,
)
from udml_core.runs import Run, runs_folder
from udml_core.runs.analyses import Analysis
from udml_core.runs.tasks import LIVE_STATES
from udml_core.work.jobs.auditing import find_auditing, start_auditing

from ..shell.address import choice_from_address, write_address
from ..shell.awaited import line_of, show_progress
from ..shell.empty_state import show_empty
from ..shell.growth import load_changes
from ..shell.run_status import escaped, escaped_message
from ..shell.selection import selection
from ..shell.user_errors import keep_user_errors, show_user_errors
from .advising import has_race
from .audited import (
    FINDINGS,
    NOT_COUNTED,
    VIEW,
    count_findings,
    counts_of,
    first_finding,
    kinds_of,
    load_audit,
    load_facts,
)
from .classes import show_skipped
from .computed import chosen_encoder
from .copies import audit_key
from .duplicates import show_border, show_groups
from .excluding import NONE, ShownImages, change_list, list_buttons, offer_button, select_images, show_excluded
from .growing import FINDING, show_new, show_new_files
from .moving import say_moved, show_moving
from .rankings import kept_mask, show_outliers, show_quality, titled
from .settings import choose_settings, propose_threshold, say_threshold

GROUPS = {"exact": "group has equal content, whatever the names and formats of its files",
          "near": "group is connected by near-duplicates, which show the same photograph when they are aligned; images "
                  "of a series can be that similar too"}
NOTHING = {"exact": "No two images have equal content.", "near": "No near-duplicates at these settings.",
           "leakage": "No duplicates with images in both halves of this split.",
           "classes": "No class is that small.",
           "broken": "Every file could be read."}


def show_audit(dataset: Dataset) -> None:
    """Show the audit, its progress, or the button that starts it."""
    say_moved()
    encoder = chosen_encoder(dataset)
    state = find_auditing(dataset, encoder, runs_folder())
    key = audit_key(dataset, encoder)
    if state.run is not None and state.finished is not None:
        _show_findings(dataset, state.run, load_audit(state.run, state.finished.id,
                                                       state.finished.stored_status().ticket),
                       first_finding(dataset, state.run, state.finished))
    elif state.task is not None:
        _show_first(dataset, state.task if isinstance(state.task, Analysis) else None, key)
    else:
        _offer(dataset, key, lambda: start_auditing(dataset, encoder, runs_folder()))


def _show_first(dataset: Dataset, comparing: Analysis | None, key: str) -> None:
    """Show what is found without features until all images are compared; before, say what comes.

    Args:
        dataset: The data set.
        comparing: The comparison of all images; None while their features are computed.
        key: Key of its progress, whose place has one height.
    """
    first = _first_audit(dataset.fingerprint, dataset)
    with st.container(key="audit-progress"):
        if comparing is not None:
            show_progress(comparing, key, "The audit")
        elif first is None:
            st.info("Copies, quality and broken files appear here first. Near-duplicates and outliers follow when all "
                    "images are compared.", icon=":material/hourglass_top:")
        else:
            st.caption(":material/hourglass_top: First findings. Near-duplicates and outliers follow when all images "
                       "are compared.")
    if first is not None:
        _show_findings(dataset, None, first)
    elif comparing is None:
        _await_first(dataset)
        if choice_from_address("finding", FINDINGS, "exact") == "new" and load_changes(dataset) is not None:
            show_new_files(dataset)
        else:
            show_moving(dataset)


@st.cache_resource(max_entries=4, show_spinner=False, validate=lambda first: first is not None)
def _first_audit(fingerprint: str, _dataset: Dataset) -> Audit | None:  # noqa: ARG001
    return first_audit(_dataset)


@st.fragment(run_every="2s")
def _await_first(dataset: Dataset) -> None:
    """Run the page again as soon as the files are compared."""
    if _first_audit(dataset.fingerprint, dataset) is not None:
        st.rerun(scope="app")


@show_user_errors()
def audit_line(dataset: Dataset) -> bool:
    """Say in one line whether the audit is in progress, or how much it has found; nothing if it was not started.

    Returns:
        Whether the line has the main button of the page.
    """
    encoder = chosen_encoder(dataset)
    state = find_auditing(dataset, encoder, runs_folder())
    if state.run is not None and state.finished is not None:
        count = count_findings(dataset, state.run, state.finished)
        if (view := st.session_state[VIEW]) != "audit":
            kind: Literal["primary", "secondary", "tertiary"] = (
                "tertiary" if not count else "secondary" if view == "advice" or has_race(dataset) else "primary")
            _line_of_audit().button(f"Audit: {counted(count, 'finding')}", icon=":material/fact_check:",
                                    key="audit-show", type=kind,
                                    on_click=st.session_state.update, args=({VIEW: "audit"},),
                                    help="Show duplicates, quality, outliers and small classes, at the default "
                                         "settings.")
            return kind == "primary"
    elif state.task is not None and st.session_state[VIEW] != "advice":  # which shows it where it matters
        with _line_of_audit():
            _await_audit(dataset, encoder)
    return False


def _line_of_audit() -> DeltaGenerator:
    """Return the place of the line about the audit, whose width and height do not follow its words."""
    return st.container(key="audit-line")


@st.fragment(run_every="2s")
def _await_audit(dataset: Dataset, encoder: EncoderSpec) -> None:
    """Say how far the audit is, unless the step before it is in progress; run the page again when it ends."""
    task = find_auditing(dataset, encoder, runs_folder()).task
    if task is None:
        st.rerun(scope="app")
    status = task.status()
    if status.state in LIVE_STATES:  # else the page shows another step of these images, which comes first
        line = line_of(task, status)
        is_beside = isinstance(task, Run)  # with its step and time left
        st.caption(":material/hourglass_top: " + ("Their audit follows." if is_beside else
                                                  f"Audit: {escaped(line[:1].lower() + line[1:])}."))


def _offer(dataset: Dataset, key: str, start: Callable[[], object]) -> None:
    """Show what an audit finds, and the button that starts it."""
    show_empty("An audit finds broken files, exact and near-duplicates, outliers, small classes, and duplicates with "
               "images in both halves of a split. You decide which images runs leave out; no file is changed.", "audit")
    with st.container(horizontal_alignment="center"):
        starts = st.button("Audit these images", type="primary", icon=":material/fact_check:",
                           help="Compares all images by a hash and by features, once, in the background.")
    if starts:
        with keep_user_errors(key, dataset.fingerprint, True):
            start()
            st.rerun()
    elif failure := st.session_state.pop(f"{key}-failure", ""):
        st.error(escaped_message(failure), icon=":material/error:")
    if len(excluded_images(dataset)) or can_undo(dataset):
        show_excluded(dataset)


def _show_findings(dataset: Dataset, run: Run | None, audit: Audit, default: str = "exact") -> None:
    """Show the findings.

    Args:
        dataset: The data set.
        run: The run of its features; None as long as the images are compared without features.
        audit: The comparison of the images.
        default: The finding that is shown first, unless the address names one.
    """
    kinds = kinds_of(dataset, audit)
    first = choice_from_address("finding", kinds, default)
    toolbar = st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    with toolbar:
        slot = st.container(width="content")
        settings = choose_settings(audit, st.session_state.get(FINDING, first))
    excluded, facts, decisions = excluded_images(dataset), load_facts(dataset), decisions_of(dataset)
    findings = find_problems(audit, dataset, excluded, settings, facts, decisions)
    counts = counts_of(dataset, findings, excluded, facts)
    finding = slot.segmented_control("Finding", kinds, default=first, key=FINDING, required=True,
                                     format_func=lambda name: _title(name, counts[name]))
    write_address("finding", finding)  # always: the first one changes with decisions
    if not audit.is_complete:
        st.warning("So many images have close hashes that only the closest pairs are compared. In drawings and small "
                   "gray images the features tell more: open Settings and choose them.", icon=":material/warning:")
    if finding == "near":
        say_threshold(audit, settings)
        if run is not None:
            propose_threshold(run, settings)
    kept = kept_mask(len(dataset), excluded)
    match finding:
        case "broken":
            _show_broken(dataset)
        case "excluded":
            show_excluded(dataset)
        case "exact" | "near" if groups := getattr(findings, finding):
            show_groups(dataset, groups, facts, GROUPS[finding], finding)
        case "border":
            show_border(dataset, findings.border, audit.agreement_of(findings.border), audit.least_agreement(settings))
        case "new":
            show_new(dataset, audit, findings, kept, facts)
        case "quality":
            show_quality(dataset, facts, kept)
        case "outliers":
            show_outliers(dataset, audit, kept, settings.fence)
        case _:
            _show_gallery(dataset, finding, _shown(finding, dataset, findings))
    if not counts[finding]:
        _lead_to_next(kinds, finding, counts)


def _lead_to_next(kinds: list[str], finding: str, counts: dict[str, int]) -> None:
    """Show the button that leads from a finding without images to the next finding to decide on; nothing without one.

    Args:
        kinds: The findings of the data set in their order.
        finding: The finding that is shown.
        counts: The number of each finding.
    """
    at = kinds.index(finding)
    following = next((kind for kind in kinds[at + 1:] + kinds[:at] if counts[kind] and kind not in NOT_COUNTED), None)
    if following is not None:
        st.button(f"Next finding: {_title(following, counts[following])}", icon=":material/arrow_forward:",
                  key="audit-next", on_click=st.session_state.update, args=({FINDING: following},))


def _title(finding: str, count: int) -> str:
    """Return a finding's title with its number; outliers are a ranking, of which none may be a finding."""
    return titled(FINDINGS[finding], count) if finding == "outliers" else f"{FINDINGS[finding]} ({count:,})"


def _shown(finding: str, dataset: Dataset, findings: Findings) -> ShownImages:
    """Return what the gallery of a finding shows."""
    if finding == "leakage":
        return _of_leaks(dataset, findings)
    if finding != "classes":
        return ShownImages(NONE, [], "")
    small = np.setdiff1d(images_of(dataset, findings.small_classes), excluded_images(dataset))
    sizes = ", ".join(f"{escaped(dataset.class_names[label])} ({size})"
                      for label, size in findings.small_classes.items())
    return ShownImages(small, [], f"Images in each small class: {sizes}", "Exclude all images of these classes", small)


def _of_leaks(dataset: Dataset, findings: Findings) -> ShownImages:
    """Choose a split and return its groups, the training images first."""
    splits = {split.name: split for split in divided_splits(dataset)}
    name = st.segmented_control("Split", list(splits), default=next(iter(splits), None), required=True,
                                key="audit-split",
                                format_func=lambda name: f"{escaped(name)} ({len(findings.leaks[name]):,})")
    if name is None:
        return ShownImages(NONE, [], "")
    groups, split = findings.leaks[name], splits[name]
    halves = [np.concatenate([in_half(group, split.train), in_half(group, split.test)]) for group in groups]
    images = np.concatenate(halves) if halves else NONE
    badges = [f"copies {number}, {'train' if index in split.train else 'test'}"
              for number, group in enumerate(halves, 1) for index in group]
    return ShownImages(images, badges, "Each group has images in both halves, so that a run is tested on images that "
                 "it was trained on. If only the training copies are excluded, the test half does not change.",
                 "Exclude the training copies", in_half(images, split.train))


def _show_gallery(dataset: Dataset, finding: str, shown: ShownImages) -> None:
    """Show the images of a finding and the buttons that exclude them."""
    if not len(shown.images):
        with st.container(horizontal=True, gap="small"):
            list_buttons(dataset)
        left = " The excluded images are not counted." if len(excluded_images(dataset)) else ""
        st.success(f"{NOTHING[finding]}{left}", icon=":material/check_circle:")
        return
    chosen = selection(dataset)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button(f"Exclude selected ({len(chosen.ids):,})", icon=":material/block:", key="audit-exclude",
                  disabled=not len(chosen.ids), on_click=change_list, args=(dataset, exclude, chosen.ids))
        if shown.offer:
            offer_button(dataset, f"{shown.offer} ({len(shown.offered):,})", shown.offered)
        list_buttons(dataset)
    select_images(dataset, shown, f"Images of the finding {FINDINGS[finding]}", f"audit-{finding}")


def _show_broken(dataset: Dataset) -> None:
    if not dataset.skipped:
        st.success(NOTHING["broken"], icon=":material/check_circle:")
        return
    show_skipped(dataset, "broken")
    st.caption("These files are no part of the data set, so runs never use them.")
