"""Moving a file: never over another, whole in one place at every moment, and across file systems by a checked copy."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from udml_core.base import moving
from udml_core.base.errors import UserError
from udml_core.base.moving import ASIDE, move_file


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    source, target = tmp_path / "home" / "a.jpg", tmp_path / "away" / "a.jpg"
    for path in (source, target):
        path.parent.mkdir()
    source.write_bytes(b"photograph")
    os.utime(source, ns=(1_700_000_000_123_456_789, 1_700_000_000_123_456_789))
    return source, target


def refuse_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let links fail as between two file systems."""
    def fail(*_: object, **__: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", fail)


@pytest.mark.parametrize("crosses", [False, True])
def test_a_file_moves_with_its_time(crosses: bool, places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = places
    before = source.stat().st_mtime_ns
    if crosses:
        refuse_links(monkeypatch)
    move_file(source, target)
    assert (source.exists(), target.read_bytes()) == (False, b"photograph")
    assert target.stat().st_mtime_ns == before
    assert [path.name for path in target.parent.iterdir()] == ["a.jpg"]


@pytest.mark.parametrize("crosses", [False, True])
@pytest.mark.parametrize("other", [b"another..", b"", b"photograpH"])
def test_another_file_is_never_overwritten(crosses: bool, other: bytes, places: tuple[Path, Path],
                                           monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = places
    target.write_bytes(other)
    if crosses:
        refuse_links(monkeypatch)
    with pytest.raises(UserError, match="never overwritten"):
        move_file(source, target)
    assert (source.read_bytes(), target.read_bytes()) == (b"photograph", other)


def test_a_file_that_comes_during_the_copy_is_not_overwritten(places: tuple[Path, Path],
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = places
    refuse_links(monkeypatch)
    copy = shutil.copy2
    monkeypatch.setattr(shutil, "copy2", lambda *paths: (copy(*paths), target.write_bytes(b"new")))
    with pytest.raises(UserError, match="never overwritten"):
        move_file(source, target)
    assert (source.read_bytes(), target.read_bytes()) == (b"photograph", b"new")


def test_a_link_at_the_target_is_not_followed(places: tuple[Path, Path]) -> None:
    source, target = places
    target.symlink_to(source)
    with pytest.raises(UserError, match="never overwritten"):
        move_file(source, target)
    assert source.read_bytes() == b"photograph"


def test_a_damaged_copy_leaves_the_file(places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = places
    refuse_links(monkeypatch)
    monkeypatch.setattr(shutil, "copy2", lambda _from, to: Path(to).write_bytes(b"damaged"))
    with pytest.raises(UserError, match="differs from the file"):
        move_file(source, target)
    assert source.read_bytes() == b"photograph"
    assert list(target.parent.iterdir()) == []


@pytest.mark.parametrize("is_link", [False, True])
def test_an_interrupted_move_is_completed(is_link: bool, places: tuple[Path, Path],
                                          monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = places
    if is_link:
        os.link(source, target)
    else:
        shutil.copy2(source, target)
    target.with_name(f".{target.name}{ASIDE}").write_bytes(b"phot")
    move_file(source, target)
    assert (source.exists(), target.read_bytes()) == (False, b"photograph")
    again = source.parent / "b.jpg"
    again.write_bytes(b"second")
    refuse_links(monkeypatch)
    target.with_name(f".b.jpg{ASIDE}").write_bytes(b"sec")
    move_file(again, target.with_name("b.jpg"))
    assert target.with_name("b.jpg").read_bytes() == b"second"
    assert moving.digest_of_file(target) != moving.digest_of_file(target.with_name("b.jpg"))
