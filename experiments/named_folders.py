"""Compare the folders that a reader wrote from a messy folder with the true classes.

    python -m experiments.named_folders messy EXPORT --minutes 13.5 --clicks 98 --out assets/results/named-folders.json

`messy` is a folder of `experiments.messy`, and EXPORT is the folder that the page Label or `udml sort` wrote from its
photographs. Minutes and clicks are what the reader reports. Of each photograph the key knows the species, its copies,
and whether it was planted as a fault. The species of a folder is that of most of its images, because the reader may
give it any name. Without --out the command only prints.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

from experiments.messy import DAMAGED
from experiments.recording import provenance, record_parser, write_record
from udml_core.base.errors import UserError, counted
from udml_core.base.spreadsheets import unguarded
from udml_core.work.exporting.sorting_record import METADATA

TITLE = "Messy folder into named folders"


def written_images(export: Path) -> dict[str, str]:
    """Return the folder of each image that an export has written, by the image's name; none for an unnamed image.

    The table of the export says which image a file shows, because a file can get another name. Only files that are
    there count.

    Raises:
        UserError: The folder has no table of an export.
    """
    try:
        with (export / METADATA).open(newline="", encoding="utf-8") as table:
            rows = [(unguarded(row["image"]), unguarded(row["file_name"]), row["label"])
                    for row in csv.DictReader(table)]
    except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
        raise UserError(f"{export} must be a folder that `udml sort` or the page Label wrote, and its {METADATA} could "
                        f"not be read: {error}. Name that folder.") from error
    return {image: file.rpartition("/")[0] if label else "" for image, file, label in rows if (export / file).is_file()}


def agreement(folder_of: dict[str, str], key: dict[str, Any]) -> dict[str, float]:
    """Compare folders with the true classes.

    Args:
        folder_of: The folder of each image, empty without a name.
        key: The key of the messy folder.

    Returns:
        Photographs without planted copies and faults; images in folders, folders, and the species of these; the share
        of images of their folder's species; photographs of which neither the image nor a copy is in a folder; and
        further copies of a photograph, and planted faults, that are in a folder. Shares are in percent.

    Raises:
        UserError: An image is none of the messy folder, or no image is in a folder.
    """
    species = key["classes"]
    if unknown := sorted(set(folder_of) - species.keys()):
        raise UserError(f"The key does not know {unknown[0]}. Name the messy folder whose photographs were sorted.")
    named = {image: folder for image, folder in folder_of.items() if folder}
    if not named:
        raise UserError("No image is in a folder of a class. Write the named images first.")
    original = {row["file"]: row["of"] for row in key["duplicates"]}
    faults = {image for kind in ("panoramas", *DAMAGED) for image in key[kind]}
    photographs = species.keys() - original.keys() - faults
    shown = Counter(original.get(image, image) for image in named)
    counts = {folder: Counter(species[image] for image, own in named.items() if own == folder)
              for folder in set(named.values())}
    leaders = {folder: count.most_common(1)[0] for folder, count in counts.items()}
    unnamed = len(photographs - shown.keys())
    return {"photographs": len(photographs), "images in folders": len(named), "folders": len(leaders),
            "species of the folders": len({name for name, _ in leaders.values()}),
            "purity": round(100 * sum(count for _, count in leaders.values()) / len(named), 1),
            "unnamed": unnamed, "share unnamed": round(100 * unnamed / len(photographs), 1),
            "copies left": sum(count - 1 for count in shown.values()), "faults left": len(faults & named.keys())}


def words(found: dict[str, float]) -> str:
    """Return the sentence that the text of the record states."""
    return (f"{found['minutes']:g} minutes and {found['clicks']:,} clicks from import to folders: "
            f"{counted(int(found['images in folders']), 'image')} in {counted(int(found['folders']), 'folder')} of "
            f"{found['species of the folders']:,} species, {found['purity']:g} % of them with the species of their "
            f"folder; {found['unnamed']:,} of {found['photographs']:,} photographs unnamed; copies left: "
            f"{found['copies left']:,}; planted faults left: {found['faults left']:,}")


def main() -> None:
    """Compare the folders that the arguments name, print the figures, and write the record."""
    parser = record_parser(__doc__, required=False)
    parser.add_argument("messy", type=Path, help="a folder of experiments.messy")
    parser.add_argument("export", type=Path, help="the folder that was written")
    parser.add_argument("--minutes", type=float, required=True, help="minutes from import to folders")
    parser.add_argument("--clicks", type=int, required=True, help="clicks and keys, by the reader")
    values = parser.parse_args()
    key = json.loads((values.messy / "key.json").read_text(encoding="utf-8"))
    found = {**agreement(written_images(values.export), key), "minutes": values.minutes, "clicks": values.clicks}
    print(words(found))
    if values.out:
        write_record(values.out, {**provenance("named_folders"), "protocol": "One reader with fresh eyes, who reported "
                                  "minutes and clicks. " + " ".join(str(__doc__).split("\n\n")[-1].split()),
                                  "datasets": {TITLE: {"rows": {"one reader": {
                                      name: [value, 0.0] for name, value in found.items()}}}}})


if __name__ == "__main__":
    main()
