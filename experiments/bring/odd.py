"""Odd folders, tables and archives: each opens or is refused by one message, and no file of the user changes."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.sources.listing import listed

LONGEST_MESSAGE = 3_000
Write = Callable[[Path], Path]
"""Writes a folder, a table or an archive below an empty folder, and returns its path."""


def image(kind: str = "PNG", mode: str = "RGB", side: int = 16, gray: int = 90) -> bytes:
    content = io.BytesIO()
    Image.new(mode, (side, side), gray if mode in ("L", "P", "1", "I;16", "I", "F") else None).save(content, kind)
    return content.getvalue()


PNG, JPEG = image(), image("JPEG")


def paths(contents: dict[str, bytes]) -> Write:
    def write(root: Path) -> Path:
        for name, content in contents.items():
            (root / "data" / name).parent.mkdir(parents=True, exist_ok=True)
            (root / "data" / name).write_bytes(content)
        (root / "data").mkdir(exist_ok=True)
        return root / "data"

    return write


def linked(target: str, name: str = "link") -> Write:
    """Return a function that writes two images, and a link beside them."""
    def write(root: Path) -> Path:
        folder = paths({"a/1.png": PNG, "b/2.png": JPEG})(root)
        (folder / name).symlink_to(target)
        return folder

    return write


def piped(root: Path) -> Path:
    folder = paths({"1.png": PNG, "2.png": JPEG})(root)
    os.mkfifo(folder / "3.png")
    return folder


def table(text: bytes, name: str = "metadata.csv") -> Write:
    return paths({"1.png": PNG, "2.png": JPEG, name: text})


def vectors(array: object, beside: bytes | None = None) -> Write:
    def write(root: Path) -> Path:
        np.save(root / "t.npy", np.asarray(array), allow_pickle=True)
        if beside is not None:
            (root / "t.csv").write_bytes(beside)
        return root / "t.npy"

    return write


def zipped(members: dict[str, bytes], cut: int | None = None) -> Write:
    def write(root: Path) -> Path:
        with zipfile.ZipFile(root / "t.zip", "w") as packed:
            for name, content in members.items():
                packed.writestr(name, content)
        content = (root / "t.zip").read_bytes()
        (root / "t.zip").write_bytes(content[:cut])
        return root / "t.zip"

    return write


def tarred(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> Write:
    """Return a function that writes a TAR archive of two images and another member."""
    def write(root: Path) -> Path:
        with tarfile.open(root / "t.tar.gz", "w:gz") as packed:
            for member_name, member_kind, content in (("a/1.png", tarfile.REGTYPE, PNG), (
                    "b/2.png", tarfile.REGTYPE, JPEG), (name, kind, b"")):
                member = tarfile.TarInfo(member_name)
                member.type, member.linkname, member.size = member_kind, target, len(content)
                packed.addfile(member, io.BytesIO(content))
        return root / "t.tar.gz"

    return write


def raw(name: str, content: bytes) -> Write:
    def write(root: Path) -> Path:
        (root / name).write_bytes(content)
        return root / name

    return write


GOOD = {"a/1.png": PNG, "b/2.png": JPEG}
ROWS = b"file_name,label\n1.png,a\n2.png,b\n"
ODD: dict[str, dict[str, Write]] = {
    "folders": {
        "empty": paths({}),
        "no image": paths({"notes.txt": b"text"}),
        "one image": paths({"1.png": PNG}),
        "an empty image": paths(GOOD | {"a/3.png": b""}),
        "text named as an image": paths(GOOD | {"a/3.jpg": b"<html>"}),
        "a cut image": paths(GOOD | {"a/3.png": PNG[:40]}),
        "only damaged images": paths({"1.png": b"x", "2.png": b"y"}),
        "a PNG file named JPG": paths(GOOD | {"a/3.jpg": PNG}),
        "capital extensions": paths({"A/1.PNG": PNG, "B/2.JPEG": JPEG}),
        "hidden files": paths(GOOD | {".DS_Store": b"", "a/._1.png": b"x", "__MACOSX/a/1.png": b"x"}),
        "spaces and accents": paths({"ä b/ç 1.png": PNG, "日本/2.png": JPEG}),
        "one class folder": paths({"a/1.png": PNG, "a/2.png": JPEG}),
        "a class in a class": paths({"x/a/1.png": PNG, "x/b/2.png": JPEG}),
        "images beside classes": paths(GOOD | {"3.png": PNG}),
        "tiny images": paths(GOOD | {"a/3.png": image(side=2)}),
        "16 bits": paths(GOOD | {"a/3.png": image(mode="I;16")}),
        "palette and one bit": paths(GOOD | {"a/3.png": image(mode="P"), "a/4.png": image(mode="1")}),
        "transparent": paths(GOOD | {"a/3.png": image(mode="RGBA")}),
        "other formats": paths(GOOD | {"a/3.gif": image("GIF"), "a/4.bmp": image("BMP"), "a/5.tiff": image("TIFF")}),
        "a broken link": linked("/no/such/place"),
        "a link to itself": linked(".", "a/loop"),
        "a named pipe": piped,
        "a name of 250 letters": paths(GOOD | {"a/" + "x" * 246 + ".png": PNG}),
        "equal images": paths({"a/1.png": PNG, "b/1.png": PNG}),
        "a line break in a name": paths(GOOD | {"a/3\n4.png": PNG}),
    },
    "tables": {
        "a table of images": table(ROWS),
        "Latin-1": table(ROWS + "é.png,ü\n".encode("latin1")),
        "UTF-16": table(ROWS.decode().encode("utf-16")),
        "an empty table": table(b""),
        "a header alone": table(b"file_name,label\n"),
        "a column twice": table(b"file_name,label,label\n1.png,a,b\n"),
        "a path that leads out": table(b"file_name\n../../1.png\n2.png\n"),
        "an absent image": table(ROWS + b"3.png,a\n"),
        "an image twice": table(ROWS + b"1.png,b\n"),
        "too few cells": table(ROWS + b"2.png\n"),
        "no Parquet file": table(b"PAR1", "metadata.parquet"),
        "vectors that are text": vectors([["a", "b"]] * 4),
        "vectors with NaN": vectors([[1.0, float("nan")]] * 4),
        "pickled vectors": vectors(np.array([{}, (), "a", 1], dtype=object)),
        "labels for other rows": vectors(np.eye(4), b"label\na\nb\n"),
        "vectors with labels": vectors(np.eye(4), b"label\na\na\nb\nb\n"),
        "no array": raw("t.npy", b"hello"),
    },
    "archives": {
        "an archive of images": zipped(GOOD),
        "a cut archive": zipped(GOOD, -60),
        "no archive": raw("t.zip", b"<html>404</html>"),
        "an empty file": raw("t.zip", b""),
        "an empty archive": zipped({}),
        "no image in an archive": zipped({"a.txt": b"text"}),
        "paths that lead out": zipped({"../../a/1.png": PNG, "/b/2.png": JPEG}),
        "an archive that grows": zipped({"a/1.png": PNG, "b/2.png": JPEG, "zeros.png": b"\0"}),
        "a link in an archive": tarred("c", tarfile.SYMTYPE, "/etc/passwd"),
        "a device in an archive": tarred("c", tarfile.CHRTYPE),
        "a cut gzip": raw("t.tar.gz", b"\x1f\x8b\x08\0\0"),
        "a table in an archive": zipped({"1.png": PNG, "2.png": JPEG, "metadata.csv": ROWS}),
    },
}
"""The cases by kind."""


def content_of(root: Path) -> dict[str, str]:
    """Return a digest of each file below a folder; links and pipes by their kind."""
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "other"
            for path in sorted(root.rglob("*")) if path.is_symlink() or not path.is_dir()}


def attempt(write: Write, root: Path) -> tuple[str, str]:
    """Open a case, and return how it ended, and its message if it was refused or broken.

    It ends `opened`, `refused`, `lost` or `broken`.

    It is lost if a file changed, if an image is neither loaded nor listed as skipped, or if a refused archive left an
    import; broken if the error is no message for users.
    """
    root.mkdir(parents=True)
    path = write(root)
    before, imports = content_of(root), set(catalog.remembered_folders())
    try:
        dataset = catalog.load(str(path))
    except UserError as error:
        message = str(error)
        is_message = 0 < len(message) < LONGEST_MESSAGE and "Traceback" not in message
        if content_of(root) != before or set(catalog.remembered_folders()) != imports:
            return "lost", message
        return "refused" if is_message else "broken", message.replace(str(root), "…")
    except Exception as error:  # any other error would reach the user as a traceback
        return "broken", repr(error)
    images = [dataset.images[index] for index in range(len(dataset))]
    known = set(dataset.names) | {skipped.file for skipped in dataset.skipped}
    is_whole = not path.is_dir() or {file for file, _ in listed(path)} <= known
    return "opened" if images and is_whole and content_of(root) == before else "lost", ""
