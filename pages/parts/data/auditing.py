"""The audit of a data set: its findings with galleries, and the list of excluded images."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd
import streamlit as st

from udml_core.base.arrays import Integers
from udml_core.base.declaration import describe
from udml_core.base.errors import counted
from udml_core.data.dataset import Dataset
from udml_core.data.encoders import EncoderSpec
from udml_core.data.given.exclusions import can_undo, exclude, excluded_images
from udml_core.exploration.audit import (
    Audit,
    AuditSettings,
    Findings,
    Groups,
    all_but_first,
    divided_splits,
    find_problems,
    images_of,
    in_half,
)
from udml_core.runs import Run, runs_folder
from udml_core.runs.analyses import Analysis, find_analysis
from udml_core.runs.analyses.kinds.audit import DataAudit
from udml_core.work.jobs.auditing import find_auditing, start_auditing

from ..draw.form import field_widget
from ..shell.address import choice_from_address, write_address
from ..shell.cached import known_threshold, load_retrieval
from ..shell.empty_state import show_empty
from ..shell.run_hash import RUN_HASH
from ..shell.selection import selection
from ..shell.user_errors import keep_user_errors, show_user_errors
from .computed import chosen_encoder, show_progress
from .excluding import NONE, ShownImages, change_list, list_buttons, select_images, show_excluded

VIEW = "data-view"
"""Session key of the view of the page Data."""
FINDINGS = {"exact": "Exact duplicates", "near": "Near-duplicates", "leakage": "Leakage", "outliers": "Outliers",
            "classes": "Small classes", "broken": "Broken files", "excluded": "Excluded"}
NOTHING = {"exact": "No two images have equal content.", "near": "No near-duplicates at these settings.",
           "leakage": "No duplicates with images in both halves of this split.",
           "outliers": "No image lies beyond the fence.", "classes": "No class is that small.",
           "broken": "Every file could be read."}


def show_audit(dataset: Dataset) -> None:
    """Show the audit, its progress, or the button that starts it."""
    encoder = chosen_encoder(dataset)
    state = find_auditing(dataset, encoder, runs_folder())
    key = f"data-audit-{dataset.fingerprint[:12]}-{encoder.key}"
    if state.run is not None and state.finished is not None:
        _show_findings(dataset, state.run, _load_audit(state.run, state.finished.id,
                                                       state.finished.stored_status().ticket))
    elif isinstance(state.task, Analysis):
        show_progress(state.task, key, "The audit")
    elif state.task is not None:
        st.info("The features are computed first. Then the images are compared with each other, while no run trains.",
                icon=":material/hourglass_top:")
    else:
        _offer(dataset, key, lambda: start_auditing(dataset, encoder, runs_folder()))


@show_user_errors()
def audit_line(dataset: Dataset) -> None:
    """Say in one line whether the audit is in progress, or how much it has found; nothing if it was not started."""
    encoder = chosen_encoder(dataset)
    state = find_auditing(dataset, encoder, runs_folder())
    if state.run is not None and state.finished is not None:
        count = _count_findings(dataset, state.run, state.finished)
        st.button(f"Audit: {counted(count, 'finding')}", icon=":material/fact_check:",
                  key="audit-show", type="tertiary", on_click=st.session_state.update, args=({VIEW: "audit"},),
                  help="Show duplicates, outliers, small classes and broken files, at the default settings.")
    elif state.task is not None:
        _await_audit(dataset, encoder)


@st.fragment(run_every="2s")
def _await_audit(dataset: Dataset, encoder: EncoderSpec) -> None:
    """Say that the audit is in progress; run the page again when it ends."""
    if find_auditing(dataset, encoder, runs_folder()).task is None:
        st.rerun(scope="app")
    st.caption(":material/hourglass_top: The audit of these images is in progress.", width="content")


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
        st.error(failure, icon=":material/error:")
    if len(excluded_images(dataset)) or can_undo(dataset):
        show_excluded(dataset)


def _show_findings(dataset: Dataset, run: Run, audit: Audit) -> None:
    first = choice_from_address("finding", FINDINGS, "exact")
    toolbar = st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    with toolbar:
        slot = st.container(width="content")
        settings = _choose_settings(st.session_state.get("audit-finding", first) == "near")
    excluded = excluded_images(dataset)
    findings = find_problems(audit, dataset, excluded, settings)
    counts = _counts(dataset, findings, excluded)
    finding = slot.segmented_control("Finding", list(FINDINGS), default=first, key="audit-finding", required=True,
                                     format_func=lambda name: f"{FINDINGS[name]} ({counts[name]:,})")
    write_address("finding", finding, "exact")
    if not audit.is_complete:
        st.warning("So many images have close hashes that only the closest pairs are compared. In drawings and small "
                   "gray images the features tell more: open Settings and choose them.", icon=":material/warning:")
    if finding == "near":
        _propose_threshold(run, settings)
    match finding:
        case "broken":
            _show_broken(dataset)
        case "excluded":
            show_excluded(dataset)
        case _:
            _show_gallery(dataset, finding, _shown(finding, dataset, audit, findings))


def _choose_settings(is_near: bool) -> AuditSettings:
    """Show a widget for each setting; the address holds the values.

    Args:
        is_near: Whether near-duplicates are shown; the slider of their cosine similarity then lies open.
    """
    closed, values = st.popover("Settings", icon=":material/tune:"), {}
    for field in describe(AuditSettings):
        with st.container(width=300) if is_near and field.name == "least_cosine" else closed:
            values[field.name] = field_widget(field, field.name, bind=True)
    return AuditSettings(**values)


def _propose_threshold(run: Run, settings: AuditSettings) -> None:
    """Propose the similarity above which judged pairs of these features are the same, as the bound of near-duplicates.

    Args:
        run: The run of the frozen features.
        settings: The current settings.
    """
    retrieval = load_retrieval(run)
    threshold = known_threshold(retrieval, "final") if retrieval.spec.method == "frozen" else None
    if threshold is None or threshold.similarity is None:
        return
    proposed = {"compare": "features", "least_cosine": min(1.0, math.ceil(100 * threshold.similarity) / 100)}
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(f":material/straighten: From your judged pairs: {threshold.sentence}", width="content")
        if any(getattr(settings, name) != value for name, value in proposed.items()):
            st.button(f"Use {proposed['least_cosine']:.2f} by features alone", icon=":material/content_copy:",
                      key="audit-same", on_click=st.session_state.update, args=(proposed,),
                      help="Shows all pairs above this similarity, whatever their hashes. Use it if you judged only "
                           "copies to be the same.")


def _counts(dataset: Dataset, findings: Findings, excluded: Integers) -> dict[str, int]:
    return {"exact": len(findings.exact), "near": len(findings.near), "leakage": sum(map(len, findings.leaks.values())),
            "outliers": len(findings.outliers), "classes": len(findings.small_classes), "broken": len(dataset.skipped),
            "excluded": len(excluded)}


def _shown(finding: str, dataset: Dataset, audit: Audit, findings: Findings) -> ShownImages:
    """Return what the gallery of a finding shows."""
    match finding:
        case "exact":
            return _of_groups(dataset, findings.exact, "group has equal content, whatever the names and formats of its "
                                                    "files")
        case "near":
            return _of_groups(dataset, findings.near, "group is connected by near-duplicates; look before you exclude, "
                                                   "because images of a series can be that similar too")
        case "leakage":
            return _of_leaks(dataset, findings)
        case "outliers":
            scores = audit.outlier_scores()[findings.outliers] if audit.has_features else NONE
            return ShownImages(findings.outliers, [f"{score:.3f}" for score in scores],
                         f"Number: mean distance to the {audit.neighbors.shape[1]} nearest images, 0 … 2. Damaged, "
                         "mislabeled and rare images gather here.")
    small = np.setdiff1d(images_of(dataset, findings.small_classes), excluded_images(dataset))
    sizes = ", ".join(f"{dataset.class_names[label]} ({size})" for label, size in findings.small_classes.items())
    return ShownImages(small, [], f"Images in each small class: {sizes}", "Exclude all images of these classes", small)


def _of_groups(dataset: Dataset, groups: Groups, words: str) -> ShownImages:
    images = np.concatenate(groups) if groups else NONE
    mixed = [dataset.labels is not None and len(set(dataset.labels[group])) > 1 for group in groups]
    badges = [f"group {number}{' ✕' * is_mixed}" + (", first" if position == 0 else "")
              for number, (group, is_mixed) in enumerate(zip(groups, mixed, strict=True), 1)
              for position in range(len(group))]
    classes = f" ✕ marks {sum(mixed)} with several classes: look for wrong labels there." if any(mixed) else ""
    return ShownImages(images, badges, f"Each {words}.{classes}", "Exclude all but the first of each group",
                 all_but_first(groups))


def _of_leaks(dataset: Dataset, findings: Findings) -> ShownImages:
    """Choose a split and return its groups, the training images first."""
    splits = {split.name: split for split in divided_splits(dataset)}
    name = st.segmented_control("Split", list(splits), default=next(iter(splits), None), required=True,
                                key="audit-split", format_func=lambda name: f"{name} ({len(findings.leaks[name]):,})")
    if name is None:
        return ShownImages(NONE, [], "")
    groups, split = findings.leaks[name], splits[name]
    halves = [np.concatenate([in_half(group, split.train), in_half(group, split.test)]) for group in groups]
    images = np.concatenate(halves) if halves else NONE
    badges = [f"group {number}, {'train' if index in split.train else 'test'}"
              for number, group in enumerate(halves, 1) for index in group]
    return ShownImages(images, badges, "Each group has images in both halves, so that a run is tested on images that "
                 "it was trained on. If only the training copies are excluded, the test half does not change.",
                 "Exclude the training copies", in_half(images, split.train))


def _show_gallery(dataset: Dataset, finding: str, shown: ShownImages) -> None:
    """Show the images of a finding and the buttons that exclude them."""
    if not len(shown.images):
        with st.container(horizontal=True, gap="small"):
            list_buttons(dataset)
        st.success(NOTHING[finding], icon=":material/check_circle:")
        return
    chosen = selection(dataset)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button(f"Exclude selected ({len(chosen.ids):,})", icon=":material/block:", key="audit-exclude",
                  disabled=not len(chosen.ids), on_click=change_list, args=(dataset, exclude, chosen.ids))
        if shown.offer:
            st.button(f"{shown.offer} ({len(shown.offered):,})", icon=":material/filter_1:", key="audit-offer",
                      disabled=not len(shown.offered), on_click=change_list, args=(dataset, exclude, shown.offered))
        list_buttons(dataset)
    select_images(dataset, shown, f"Images of the finding {FINDINGS[finding]}", f"audit-{finding}")


def _show_broken(dataset: Dataset) -> None:
    if not dataset.skipped:
        st.success(NOTHING["broken"], icon=":material/check_circle:")
        return
    st.dataframe(pd.DataFrame([{"File": skipped.file, "Reason": skipped.reason} for skipped in dataset.skipped]),
                 hide_index=True, width="stretch")
    st.caption("These files are no part of the data set, so runs never use them.")


def _count_findings(dataset: Dataset, run: Run, audit: Analysis) -> int:
    """Return the number of findings at the default settings."""
    ticket = audit.stored_status().ticket
    return _sum_findings(dataset, run, audit.id, ticket, dataset.fingerprint, excluded_images(dataset).tobytes())


@st.cache_data(max_entries=16, show_spinner=False, hash_funcs=RUN_HASH)
def _sum_findings(_dataset: Dataset, run: Run, analysis_id: str, ticket: float, fingerprint: str,  # noqa: ARG001
                  excluded: bytes) -> int:
    listed = np.frombuffer(excluded, np.int64)
    findings = find_problems(_load_audit(run, analysis_id, ticket), _dataset, listed, AuditSettings())
    counts = _counts(_dataset, findings, listed)
    return sum(counts.values()) - counts["excluded"]


@st.cache_resource(max_entries=4, show_spinner="Reading the audit …", hash_funcs=RUN_HASH)
def _load_audit(run: Run, analysis_id: str, ticket: float) -> Audit:  # noqa: ARG001 (a new audit is read again)
    return find_analysis(run, analysis_id).result_of(DataAudit)
