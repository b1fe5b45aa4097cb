"""The name, note and tags that a user gives a run, in a small file beside its results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from udml_core.base.errors import UserError
from udml_core.base.files import read_record, replace_text

NOTES_FILE = "notes.json"
LONGEST_NAME, LONGEST_NOTE, LONGEST_TAG, MOST_TAGS = 120, 4000, 40, 12
Tag = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_TAG)]


class Notes(BaseModel):
    """What a user wrote about a run.

    Attributes:
        name: A name in place of the run's title; empty for the title.
        note: Free text.
        tags: Short words to filter runs by.
        problem: Why the file could not be read; empty if it could. It is not stored.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", str_strip_whitespace=True)

    name: Annotated[str, Field(max_length=LONGEST_NAME)] = ""
    note: Annotated[str, Field(max_length=LONGEST_NOTE)] = ""
    tags: Annotated[tuple[Tag, ...], Field(max_length=MOST_TAGS)] = ()
    problem: Annotated[str, Field(exclude=True)] = ""

    @classmethod
    def make(cls, name: str = "", note: str = "", tags: tuple[str, ...] = ()) -> Notes:
        """Check what a user wrote.

        Raises:
            UserError: A text is too long, or there are too many tags.
        """
        try:
            return cls(name=name, note=note, tags=tuple(dict.fromkeys(tags)))
        except ValidationError as error:
            first = error.errors()[0]
            raise UserError(f"The {first['loc'][0]} of a run cannot be stored: {first['msg']}. A name has at most "
                            f"{LONGEST_NAME} characters, a note {LONGEST_NOTE}, a tag {LONGEST_TAG}, and a run has at "
                            f"most {MOST_TAGS} tags.") from None


def read_notes(folder: Path) -> Notes:
    """Read the notes in a run's folder.

    Returns:
        The notes; empty ones if there is no file. A damaged file is ignored, and `problem` says so.
    """
    path = folder / NOTES_FILE
    try:
        return read_record(Notes, path).model_copy(update={"problem": ""})
    except FileNotFoundError:
        return Notes()
    except (OSError, ValueError):
        return Notes(problem=f"The name, note and tags in {path} could not be read and are ignored. Enter them again; "
                             "saving replaces the file.")


def write_notes(folder: Path, notes: Notes) -> None:
    """Store the notes in a run's folder atomically; empty notes remove the file."""
    if notes == Notes(problem=notes.problem):
        (folder / NOTES_FILE).unlink(missing_ok=True)
    else:
        replace_text(folder / NOTES_FILE, notes.model_dump_json(indent=1))
