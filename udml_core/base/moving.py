"""Moving a user's file without ever overwriting one: at every moment the file is whole in one place, or in both."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from udml_core.base.errors import UserError, quoted
from udml_core.base.files import digest_of_file, sync

ASIDE = ".udml-part"
"""Ending of a copy that is not complete; an interrupted move leaves one at most, which the next attempt replaces."""


def move_file(source: Path, target: Path) -> None:
    """Move a file to a path that is free, or complete a move that was interrupted.

    Within a file system the file gets its second name before it loses the first. Elsewhere it is copied, compared and
    on the disk before the first is removed.

    Raises:
        UserError: Another file is at the target, or the copy differs.
        OSError: The file system refuses.
    """
    if not os.path.lexists(target):
        try:
            os.link(source, target, follow_symlinks=False)
        except FileExistsError as error:
            raise UserError(_taken(target)) from error
        except (OSError, NotImplementedError):  # another file system, or one without hard links
            _copy(source, target)
    elif not is_same_file(source, target):
        raise UserError(_taken(target))
    source.unlink()


def is_same_file(first: Path, second: Path) -> bool:
    """Return whether two paths lead to the same file, or to regular files of the same content."""
    if second.is_symlink() or not second.is_file():
        return False
    return first.samefile(second) or (first.stat().st_size == second.stat().st_size
                                      and digest_of_file(first) == digest_of_file(second))


def _copy(source: Path, target: Path) -> None:
    aside = target.with_name(f".{target.name}"[:200] + ASIDE)
    aside.unlink(missing_ok=True)
    try:
        shutil.copy2(source, aside)
        if digest_of_file(aside) != digest_of_file(source):
            raise UserError(f"The copy of {quoted(str(source))} differs from the file, which stays where it is. Check "
                            "the disk, and repeat.")
        sync(aside)
        _publish(aside, target)
        sync(target.parent)
    finally:
        aside.unlink(missing_ok=True)


def _publish(aside: Path, target: Path) -> None:
    """Give a complete copy its name, which no other file may have."""
    try:
        os.link(aside, target)
    except FileExistsError as error:
        raise UserError(_taken(target)) from error
    except OSError as error:  # a file system without hard links
        if os.path.lexists(target):
            raise UserError(_taken(target)) from error
        aside.rename(target)


def _taken(target: Path) -> str:
    return f"{quoted(str(target))} exists, and is never overwritten. Move it away, or choose another folder."
