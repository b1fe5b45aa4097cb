"""Sort 1,500 birds without classes into named folders as a simulated reader, who sees one example of each species.

    udml advise FOLDER --serves groups          # the folder that `--prepare` writes
    python -m experiments.sorting --prepare birds --out assets/results/sorting.json

`--prepare` draws 30 species and 1,500 of their photographs with a seed and copies them under neutral names. The reader
compares what the page Label shows with one example of each species. They name groups, split mixed groups, click wrong
images among the 60 that the page shows, and answer about proposed names. Each step costs seconds, and 20 minutes
are given. A share of the answers about single images is wrong: the reader takes the image for the species of the most
similar image of another species, by the features that all embeddings start from. Labels, proposals, threshold and
folders are the library's; only the answers come from the true species. The folders are read back from the disk. A
killed command continues after its last finished row.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from experiments.recording import provenance, record_parser, write_record
from udml_core.base.arrays import Array, Floats, Integers
from udml_core.base.errors import UserError
from udml_core.base.paths import data_folder
from udml_core.data.given.labels import answer_names, assign
from udml_core.exploration.grouping import from_center, remaining_groups, split_group
from udml_core.exploration.naming import GAMMA
from udml_core.runs import Run, list_runs, runs_folder
from udml_core.runs.search import Retrieval
from udml_core.runs.search.naming import NamedImages, grouping_of, name_images, reach_along
from udml_core.work.exporting import plan_sorting, write_plan

SPECIES, IMAGES, SEED = 30, 1_500, 36
SHOWN, GROUPS, MINUTES = 60, 60, 20
LOOK, NAME, CLICK, CONFIRM, SPLIT = 8.0, 5.0, 1.5, 3.0, 3.0
"""Seconds to look at 60 images, to name a group, to click a wrong image, to confirm or reject, and to split a group."""
PURE, FEWEST = 0.7, 3
"""Share of the images in view that must show one species for a name, and the smallest group that is named."""
ERRORS = (0.0, 0.05)
FEATURES = "final"
"""The embedding by which a reader confuses species: the features of the run without training."""


def prepare(folder: Path) -> dict[str, str]:
    """Copy the drawn photographs, unless they are there, and return the species of each."""
    if (data := data_folder()) is None:
        raise UserError("The photographs are in birds100 of the folder that UDML_DATA names. Set UDML_DATA.")
    root, random = data / "birds100", np.random.default_rng(SEED)
    species = sorted(path.name for path in root.iterdir() if path.is_dir())
    drawn = sorted(random.choice(species, SPECIES, replace=False).tolist())
    files = [path for name in drawn for path in sorted((root / name).glob("*.jpg"))]
    chosen = [files[row] for row in random.choice(len(files), min(IMAGES, len(files)), replace=False)]
    folder.mkdir(parents=True, exist_ok=True)
    truth = {f"IMG_{number:04}.jpg": path.parent.name for number, path in enumerate(chosen)}
    for name, path in zip(truth, chosen, strict=True):
        if not (folder / name).exists():
            shutil.copyfile(path, folder / name)
    return truth


def confused_with(features: Floats, species: Array) -> Array:
    """Return the species of the most similar image of another species, for each image.

    Args:
        features: Features (n, d) of the images.
        species: Species (n,) of each.
    """
    rows = np.asarray(features, np.float32)
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return species[np.where(species[:, None] == species, -np.inf, rows @ rows.T).argmax(axis=1)]


@dataclass
class Reader:
    """A simulated reader of the page Label.

    Attributes:
        opened: The run.
        frame: The embedding.
        species: The species (n,) of each image, as a name.
        error: Share of the images that the reader takes for the most similar other species.
        seconds: Time that was used.
        steps: Number of steps of each kind.
    """

    opened: Retrieval
    frame: str
    species: Array
    error: float
    seconds: float = 0.0
    steps: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.grouping = grouping_of(self.opened, self.frame)
        self.points = self.opened.frame(self.frame).take(self.grouping.indices)
        self.reach = reach_along(self.grouping.neighbors, GAMMA)
        wrong = np.random.default_rng(SEED).random(len(self.species)) < self.error
        features = self.opened.frame(FEATURES).take(self.grouping.indices)
        self.seen_as = np.where(wrong, confused_with(features, self.species), self.species)

    @property
    def has_time(self) -> bool:
        return self.seconds < 60 * MINUTES

    def spend(self, kind: str, seconds: float) -> None:
        self.steps[kind] += 1
        self.seconds += seconds

    def named(self) -> NamedImages:
        return name_images(self.opened.dataset, self.grouping.indices, self.reach)

    def name_groups(self) -> None:
        """Name each group of which most images in view show one species; split the others in two."""
        waiting = remaining_groups(self.grouping.tree.groups(GROUPS), np.ones(len(self.points), bool))
        while waiting and self.has_time:
            waiting.sort(key=len)
            rows = waiting.pop()
            if len(rows) >= FEWEST:
                waiting += self.look_at(rows[from_center(self.points[rows])])

    def look_at(self, rows: Integers) -> list[Integers]:
        """Look at a group from its border on, as the page shows it; return its parts if it is mixed."""
        shown = rows[::-1][:SHOWN]
        self.spend("groups seen", LOOK * len(shown) / SHOWN)
        species, count = Counter(self.seen_as[shown].tolist()).most_common(1)[0]
        if count < PURE * len(shown):
            self.spend("splits", SPLIT)
            codes = split_group(self.points[rows], 2)
            return [rows[part] for part in remaining_groups(codes, np.ones(len(rows), bool))]
        wrong = shown[self.seen_as[shown] != species]
        self.spend("names", NAME + CLICK * len(wrong))
        assign(self.opened.dataset, self.grouping.indices[np.setdiff1d(rows, wrong)].tolist(), species,
               is_unseen=len(rows) > SHOWN)
        return []

    def judge_proposals(self) -> None:
        """Answer about the next images of the class that the page asks about, until none is left.

        The wrong images are clicked, or the right ones if these are fewer.
        """
        while self.has_time and (found := self.named().next_names):
            proposal, names = found[0], self.named().classes
            is_right = self.seen_as[proposal.rows] == names[proposal.code]
            fewer = min(int(is_right.sum()), int((~is_right).sum()))
            self.spend("proposals", LOOK * len(is_right) / SHOWN + CONFIRM + CLICK * fewer)
            images = self.grouping.indices[proposal.rows].tolist()
            answer_names(self.opened.dataset, names[proposal.code], dict(zip(images, zip(
                proposal.certainty.tolist(), is_right.tolist(), strict=True), strict=True)))


def folders_of(named: NamedImages, truth: dict[str, str]) -> dict[str, Any]:
    """Write the folders, read them back, and return their purity and the share of named images in percent."""
    with tempfile.TemporaryDirectory() as place:
        plan = plan_sorting(named, Path(place) / "sorted")
        write_plan(plan)
        found = {path.name: path.parent.name for path in plan.target.glob("*/*.jpg")}
    right = sum(truth[name] == folder for name, folder in found.items())
    return {"images": len(named.images), "folders": len(set(found.values())), "named": len(found),
            "share named": round(100 * len(found) / len(named.images), 1), "purity": round(100 * right / len(found), 1)}


def sort_with(run: Run, frame: str, truth: dict[str, str], error: float) -> dict[str, Any]:
    """Sort as the reader does with an embedding, and return what came of it."""
    opened, cache = Retrieval(run), os.environ.get("UDML_CACHE", "")
    grouping_of(opened, frame)  # reads what the cache holds before the reader's own labels begin
    with tempfile.TemporaryDirectory() as place:
        os.environ["UDML_CACHE"] = place
        start = time.perf_counter()
        reader = Reader(opened, frame, np.array([truth[name] for name in opened.dataset.names]), error)
        reader.name_groups()
        named = reader.named()
        groups = {**folders_of(named, truth), "minutes": round(reader.seconds / 60, 1)}
        reader.judge_proposals()
        named = reader.named()
        result = {"after groups": groups, "at the end": {**folders_of(named, truth),
                                                         "minutes": round(reader.seconds / 60, 1)},
                  "steps": dict(reader.steps), "threshold": named.words,
                  "computed in seconds": round(time.perf_counter() - start, 1)}
        os.environ["UDML_CACHE"] = cache
    return result


def main() -> None:
    parser = record_parser(__doc__)
    parser.add_argument("--prepare", type=Path, required=True, help="folder of the drawn photographs")
    parser.add_argument("--frame", action="append", default=[], metavar="RUN:FRAME=TITLE",
                        help="an embedding, such as that of the adviser")
    parser.add_argument("--again", action="store_true", help="compute all rows again")
    options = parser.parse_args()
    truth = prepare(options.prepare)
    results = {} if options.again else finished_rows(options.out)
    for text in options.frame:
        where, _, title = text.partition("=")
        run_id, _, frame = where.partition(":")
        run = next(run for run in list_runs(runs_folder()) if run.id.startswith(run_id))
        for error in ERRORS:
            rows, words = results.setdefault(title, {}), f"{100 * error:g} % wrong answers"
            if words not in rows:
                rows[words] = sort_with(run, frame, truth, error)
                print(title, error, json.dumps(rows[words]), flush=True)
                _write(options.out, results)
    _write(options.out, results)


def finished_rows(path: Path) -> dict[str, Any]:
    """Return the rows of a record that an interrupted command left; none without it."""
    try:
        return dict(json.loads(path.read_text(encoding="utf-8"))["results"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _write(path: Path, results: dict[str, Any]) -> None:
    """Write the record with the rows so far, so that a killed command continues after the last of them."""
    write_record(path, provenance("sorting") | {
        "protocol": f"{IMAGES:,} photographs of {SPECIES} species, seed {SEED}; {GROUPS} groups at first; "
                    f"{MINUTES} minutes; seconds: look at 60 images {LOOK:g}, name {NAME:g}, click {CLICK:g}, "
                    f"confirm {CONFIRM:g}, split {SPLIT:g}. Purity: share of the images in folders that are of the "
                    "folder's species. A wrong answer names the species of the most similar image of another "
                    "species.", "datasets": {title: {"rows": _rows(rows)} for title, rows in results.items()},
        "results": results})


def _rows(results: dict[str, Any]) -> dict[str, Any]:
    """Return the rows of a record's table: each share of wrong answers, after the groups and at the end."""
    return {f"{words}, {when}": {name: [value, 0.0] for name, value in result[when].items()}
            for words, result in results.items() for when in ("after groups", "at the end")}


def as_table(results: Mapping[str, Any]) -> str:
    """Return the results as a Markdown table: each embedding beside the others."""
    rows = list(next(iter(results.values())))
    lines = ["| | " + " | ".join(results) + " |", "|---|" + "---:|" * len(results)]
    for words, when in ((words, when) for words in rows for when in ("after groups", "at the end")):
        cells = [f"{row['share named']:g} / {row['purity']:g} / {row['minutes']:g}" for row in (
            result[words][when] for result in results.values())]
        lines.append(f"| {words}, {when} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
