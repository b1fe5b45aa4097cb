"""Request analyses of finished runs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from udml_core.base.errors import UserError
from udml_core.data.dataset import UserImage
from udml_core.data.encoders import check_reads_images
from udml_core.runs import Run, own_copy, runs_folder
from udml_core.runs.analyses import (
    Analysis,
    AnalysisSpec,
    analysis_at,
    create_analysis,
    find_analysis,
    plan_analysis,
)
from udml_core.runs.analyses.kinds.placed import NewImages
from udml_core.runs.tasks import ADVICE, LIVE_STATES
from udml_core.work.jobs import launch
from udml_core.work.jobs.needed_memory import check_analysis

MOST_PLACED = 200


def analyse(run: Run, spec: AnalysisSpec, images: Mapping[str, bytes] | None = None,
            root: Path | None = None) -> Analysis:
    """Return the requested analysis; start it unless it is finished or in progress.

    A result that is damaged is computed again.

    An example is copied to the user's runs first, because it cannot be changed itself; see `own_copy`.

    Args:
        run: A finished run.
        spec: The request.
        images: Files of images to place on a map, by name; see `place_images`.
        root: The user's folder of runs, by default `runs_folder()`.

    Raises:
        UserError: The run or the map that the analysis starts from is not finished.
    """
    status = run.status()
    if not status.can_search:
        raise UserError(f"A run can be analyzed as soon as it has embedded all images, and {run.id} is {status.state}. "
                        f"{ADVICE[status.state]}")
    spec.build_kind().check_run(run)
    if spec.source and not find_analysis(run, spec.source).is_done():
        state = find_analysis(run, spec.source).status().state
        raise UserError(f"The analysis needs the map {spec.source}, which is {state}. {ADVICE[state]}")
    if run.is_example and not _has_result(analysis_at(run, spec)):
        run = own_copy(run, root or runs_folder())
    analysis = analysis_at(run, spec)
    if not _has_result(analysis) and (not analysis.folder.exists() or analysis.status().state not in LIVE_STATES):
        check_analysis(run, spec)
    if not analysis.folder.exists():
        launch.launch(create_analysis(run, spec, images))
    elif not _has_result(analysis) and analysis.status().state not in LIVE_STATES:
        launch.start_again(analysis)
    return analysis


def _has_result(analysis: Analysis) -> bool:
    return analysis.is_done() and not analysis.is_damaged()


def place_images(run: Run, projection: Analysis, frame: str, files: Sequence[tuple[str, bytes]]) -> Analysis:
    """Place a user's images on one frame of a finished map, in the background.

    Args:
        run: A finished run.
        projection: The map.
        frame: One of its frames.
        files: Names, and contents in any supported image format.

    Raises:
        UserError: A file is not an image, the number of files is not allowed, or the map has no such frame.
    """
    check_reads_images(run.spec().encoder, "Placing new images on a map")
    if not 1 <= len(files) <= MOST_PLACED:
        raise UserError(f"Place between 1 and {MOST_PLACED} images at a time, got {len(files)}.")
    if frame not in projection.spec().frames:
        raise UserError(f"The map {projection.id} has the frames {', '.join(projection.spec().frames)}, got '{frame}'.")
    for name, content in files:
        UserImage(content, name).reduced(1)  # refuses what cannot be read before a task starts
    images = {f"{number:04d}": content for number, (_, content) in enumerate(files)}
    digest = hashlib.sha256(b"".join(hashlib.sha256(content).digest() for _, content in files)).hexdigest()
    spec = plan_analysis(NewImages, source=projection.id, frame=frame, names=tuple(name for name, _ in files),
                         content=digest)
    return analyse(run, spec, images)
