"""What an export of named images would write, and the words for it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal, get_args

from udml_core.base.errors import counted, quoted
from udml_core.data.dataset import Dataset

How = Literal["copies", "links", "list"]
HOWS: tuple[How, ...] = get_args(How)
FIFTYONE = "fiftyone"
OF_PROGRAMS = (FIFTYONE, "label-studio.json", "label-studio.xml")
"""Files and folders that other programs import, below the target."""
PROGRAM_FILES = (f"{FIFTYONE}/data.json", f"{FIFTYONE}/labels.json", *OF_PROGRAMS[1:])
"""The files among them."""
MOST_GROUPS = 8
"""Folders whose former files a note counts one by one."""


@dataclass(frozen=True)
class Item:
    """An image of an export.

    Attributes:
        image: Name of the image in the data set.
        file: Path below the target, with forward slashes.
        label: The class; empty without a name.
        certainty: Certainty of the class, 1 for an assigned label, 0 without a name. For a label that was assigned in
            bulk, the certainty that other labels give.
        is_assigned: Whether a user assigned the class with a look at the image.
    """

    image: str
    file: str
    label: str
    certainty: float
    is_assigned: bool


Reason = Literal["named", "renamed", "unnamed", "left out", "excluded", "gone"]
REASONS: dict[Reason, tuple[str, str]] = {
    "named": ("has a name now", "have a name now"), "renamed": ("has another name now", "have another name now"),
    "unnamed": ("has no name now", "have no name now"),
    "left out": ("has no name and is left out now", "have no name and are left out now"),
    "excluded": ("is of an image that you excluded", "are of images that you excluded"),
    "gone": ("is of an image that is gone", "are of images that are gone")}
"""Why a file of an earlier export does not belong to a plan, in words for one file and for several."""


@dataclass(frozen=True)
class Former:
    """A file of an earlier export that does not belong to a plan.

    Attributes:
        item: The image as the earlier export listed it.
        reason: Why it does not belong to the plan.
        kept: Why it is not removed although files are removed, in a few words; empty if it is.
    """

    item: Item
    reason: Reason
    kept: str


@dataclass(frozen=True)
class Plan:
    """What an export would write.

    Attributes:
        dataset: The data set.
        target: The folder to write to.
        how: Copies, symbolic links, or a list of the images alone.
        items: The images.
        left_out: Number of images without a name that are left out, also of images that the embedding does not have.
        excluded: Number of images that are left out because the user excluded them, before the run or since.
        missing: Number of images whose files are gone.
        begun: What an interrupted export wrote, whose list the plan is; None for a new export.
        there: Paths of the images that an earlier export has written to the folder; they stay as they are.
        other_kind: Number of files there that are links although copies are written, or the other way around.
        differing: Paths of files there that do not have the content of the image that they stand for.
        for_programs: Whether files that FiftyOne and Label Studio import are written, too.
        changed: Lists in the folder that are not as an export wrote them; they are kept beside the new lists.
        earlier: Files of earlier exports that do not belong to this one.
        prunes: Whether these files are removed, if nothing is lost.
    """

    dataset: Dataset
    target: Path
    how: How
    items: tuple[Item, ...]
    left_out: int
    excluded: int = 0
    missing: int = 0
    begun: How | None = None
    there: frozenset[str] = frozenset()
    other_kind: int = 0
    differing: tuple[str, ...] = ()
    for_programs: bool = True
    changed: tuple[str, ...] = ()
    earlier: tuple[Former, ...] = ()
    prunes: bool = False

    @property
    def continues(self) -> bool:
        """Whether the plan is the list of an interrupted export."""
        return self.begun is not None

    @property
    def removed(self) -> tuple[Former, ...]:
        """The files of earlier exports that are removed."""
        return tuple(former for former in self.earlier if self.prunes and not former.kept)

    @property
    def classes(self) -> dict[str, int]:
        """Number of images of each class, the largest first; the empty class has no name."""
        return dict(Counter(item.label for item in self.items).most_common())

    @property
    def folders(self) -> dict[tuple[str, str], int]:
        """Number of images of each folder and its class, the largest first."""
        return dict(Counter((item.file.rpartition("/")[0], item.label) for item in self.items).most_common())

    @property
    def guessed(self) -> dict[str, int]:
        """Number of images of each class whose class has no yes from a user: it follows, or was assigned in bulk."""
        return dict(Counter(item.label for item in self.items if item.label and not item.is_assigned))

    @property
    def amount(self) -> str:
        """How many images are written, and how many are there already."""
        there = len(self.there)
        if not there:
            return counted(len(self.items), "image")
        return (f"{counted(len(self.items) - there, 'new image') if there < len(self.items) else 'no new image'} "
                f"({there:,} {_is(there)} there already)")

    @property
    def notes(self) -> list[str]:
        """What a user should know before the plan is written, in sentences."""
        notes = []
        if self.continues:
            rest = f", which wrote {_WHAT[self.begun]}; the rest becomes {_WHAT[self.how]}"
            notes.append("This continues the list of an interrupted export, unfinished.csv"
                         f"{rest if self.begun != self.how else ''}.")
        if guesses := sum(self.guessed.values()):
            notes.append(f"{counted(guesses, 'name')} of these {_is(guesses)} not confirmed: given by certainty alone, "
                         "or to so many images at once that you did not see each. In metadata.csv the column assigned "
                         "is 0 there.")
        renamed = [item for item in self.items if PurePosixPath(item.file).name != PurePosixPath(item.image).name]
        if renamed and self.how != "list":
            first = renamed[0]
            notes.append(f"{counted(len(renamed), 'file')} {'gets' if len(renamed) == 1 else 'get'} another name, "
                         f"because the old one is taken or some program would change it: "
                         f"{quoted(PurePosixPath(first.image).name)} becomes {quoted(PurePosixPath(first.file).name)}.")
        if there := len(self.there):
            notes.append(f"{counted(there, 'image')} of an earlier export {_is(there)} there and will not be touched; "
                         f"{len(self.items) - there:,} will be added.")
        if self.other_kind:
            former = "link" if self.how == "copies" else "copy"
            stays = f"is a {former} and stays one" if self.other_kind == 1 else (
                "are links and stay links" if former == "link" else "are copies and stay copies")
            notes.append(f"{counted(self.other_kind, 'file')} there {stays}. Choose a new folder for {self.how} of all "
                         "images.")
        if count := len(self.differing):
            notes.append(f"{counted(count, 'file')} there differ{'s' if count == 1 else ''} from your image of this "
                         f"name and stay{'s' if count == 1 else ''}, such as {self.differing[0]}: you changed it, or "
                         "it is of other images. Choose a new folder if you did not change it.")
        if self.changed:
            is_one = len(self.changed) == 1
            notes.append(f"{', '.join(self.changed)} there {'is' if is_one else 'are'} not as an export wrote "
                         f"{'it' if is_one else 'them'}: you changed {'it' if is_one else 'them'}, or the export was "
                         f"interrupted. A copy of {'it' if is_one else 'each'} is kept beside the new list, such as "
                         f"{PurePosixPath(self.changed[0]).stem} kept{PurePosixPath(self.changed[0]).suffix}.")
        return notes + self.former_notes

    @property
    def former_notes(self) -> list[str]:
        """What becomes of the files of earlier exports that do not belong to this one, in sentences."""
        if not (count := len(self.earlier)):
            return []
        groups = Counter((former.item.file.rpartition("/")[0], former.reason) for former in self.earlier).most_common()
        groups, more = groups[:MOST_GROUPS], sum(size for _, size in groups[MOST_GROUPS:])
        listed = [f"{counted(size, 'file')} in {folder}/ {REASONS[reason][size > 1]}"
                  for (folder, reason), size in groups] + ([f"{more:,} more in other folders"] if more else [])
        notes = [f"{counted(count, 'file')} of an earlier export {'does' if count == 1 else 'do'} not belong to this "
                 f"one: {'; '.join(listed)}."]
        if not self.prunes:
            return [f"{notes[0]} They stay, on the list earlier.csv, unless you choose to remove them (--prune)."]
        if removed := len(self.removed):
            notes.append(f"{removed:,} of them {_is(removed)} removed: only links to your images, and copies that "
                         "equal the image in your folder.")
        reasons = Counter(former.kept for former in self.earlier if former.kept).most_common()
        return notes + [f"{size:,} of them stay{'s' if size == 1 else ''}: {reason}." for reason, size in reasons]

    @property
    def lines(self) -> list[str]:
        """The plan in words, a line for each folder."""
        excluded = f", and {self.excluded:,} that you excluded" if self.excluded else ""
        excluded += f", and {self.missing:,} whose files are gone" if self.missing else ""
        verb = {"copies": "Copies", "links": "Links", "list": "A list"}[self.how]
        head = "No image has a name now, so nothing is written." if not self.items else (
            f"{verb} of {self.amount} in {counted(len(self.folders), 'folder')} below "
            f"{quoted(str(self.target))}. {counted(self.left_out, 'image')} without a name {_is(self.left_out)} left "
            f"out{excluded}. Your files are neither moved nor deleted.")
        return [head, *self.notes, *(
            f"{count:7,}  {folder}/" + (f"  (class {quoted(label)})" if label not in (folder, "") else "")
            for (folder, label), count in self.folders.items())]


_WHAT: dict[How | None, str] = {"copies": "copies", "links": "links", "list": "a list"}


def _is(count: int) -> str:
    return "is" if count == 1 else "are"
