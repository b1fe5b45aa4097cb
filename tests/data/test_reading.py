"""Images after reading: modes, orientation, transparency and other formats.

Also names of files and folders.
"""

from __future__ import annotations

import io
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import EpsImagePlugin, Image

from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.dataset import read_image, read_user_image

RAMP = np.linspace(0, 255, 16).astype(np.uint8)[None].repeat(12, 0)
COLORED = np.stack([RAMP, RAMP[:, ::-1], 255 - RAMP // 2], -1)

STORED: dict[str, tuple[str, Callable[[], Image.Image], float]] = {
    "gray": ("a.png", lambda: Image.fromarray(RAMP), 0),
    "16-bit png": ("a.png", lambda: Image.fromarray(RAMP.astype(np.uint16) * 257), 0),
    "16-bit tiff": ("a.tif", lambda: Image.fromarray(RAMP.astype(np.uint16) * 257), 0),
    "32-bit integers": ("a.tif", lambda: Image.fromarray(RAMP.astype(np.int32) * 257), 0),
    "floats to 1": ("a.tif", lambda: Image.fromarray(RAMP.astype(np.float32) / 255), 0),
    "floats to 255": ("a.tif", lambda: Image.fromarray(RAMP.astype(np.float32)), 0),
    "palette": ("a.gif", lambda: Image.fromarray(RAMP).convert("P"), 0),
    "cmyk jpeg": ("a.jpg", lambda: Image.fromarray(RAMP).convert("RGB").convert("CMYK"), 6),
    "opaque alpha": ("a.png", lambda: Image.fromarray(RAMP).convert("RGBA"), 0),
    "webp": ("a.webp", lambda: Image.fromarray(RAMP), 8),
}


def test_a_users_image_is_read_or_rejected_with_its_name(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Image.fromarray(RAMP).save(tmp_path / "a.png")
    assert read_user_image(tmp_path / "a.png", "mine").size == (16, 12)
    (tmp_path / "b.png").write_bytes(b"text")
    with pytest.raises(UserError, match="mine must be an image in one of the formats JPEG, PNG"):
        read_user_image(tmp_path / "b.png", "mine")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 50)  # Pillow rejects images of more than twice this size
    with pytest.raises(UserError, match=r"mine must be an image, but could not be read: .*exceeds limit"):
        read_user_image(tmp_path / "a.png", "mine")


@pytest.mark.parametrize("kind", STORED)
def test_a_gray_ramp_keeps_its_values_in_every_format(kind: str, tmp_path: Path) -> None:
    name, make, tolerance = STORED[kind]
    make().save(tmp_path / name)
    read = np.asarray(read_image(tmp_path / name)).astype(int)
    assert read.shape == (12, 16, 3)
    assert np.abs(read - RAMP[..., None]).max() <= tolerance


def test_a_dark_16_bit_image_stays_dark(tmp_path: Path) -> None:
    Image.fromarray(np.full((8, 8), 6554, np.uint16)).save(tmp_path / "a.png")
    assert np.unique(np.asarray(read_image(tmp_path / "a.png"))).tolist() == [26]


@pytest.mark.parametrize("orientation", range(1, 9))
def test_every_exif_orientation_is_turned_upright(orientation: int, tmp_path: Path) -> None:
    """The image is stored as EXIF 2.3 defines the orientation (tag 0x0112)."""
    picture = Image.fromarray(COLORED)
    undo = {1: None, 2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180,
            4: Image.Transpose.FLIP_TOP_BOTTOM, 5: Image.Transpose.TRANSPOSE, 6: Image.Transpose.ROTATE_90,
            7: Image.Transpose.TRANSVERSE, 8: Image.Transpose.ROTATE_270}[orientation]
    stored = picture if undo is None else picture.transpose(undo)
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored.save(tmp_path / "a.png", exif=exif)
    np.testing.assert_array_equal(np.asarray(read_image(tmp_path / "a.png")), COLORED)


@pytest.mark.filterwarnings("ignore::UserWarning")  # Pillow warns about the damaged block
def test_an_image_with_a_damaged_exif_block_is_readable(tmp_path: Path) -> None:
    """Each byte of the block is inverted once.

    Pillow's `exif_transpose` raises exceptions for dozens of them.
    """
    exif = Image.Exif()
    exif[0x0112], exif[0x010F], exif[0x829A] = 6, "Maker", 0.01
    Image.fromarray(COLORED).save(tmp_path / "a.jpg", exif=exif)
    whole = (tmp_path / "a.jpg").read_bytes()
    start = whole.index(b"Exif")
    for position in range(start, start + len(exif.tobytes())):
        damaged = whole[:position] + bytes([whole[position] ^ 0xFF]) + whole[position + 1 :]
        assert read_user_image(io.BytesIO(damaged), "mine").size in ((16, 12), (12, 16))


@pytest.mark.parametrize(("side", "expected"), [
    (None, (1600, 1200)), (301, (1600, 1200)), (300, (800, 600)), (150, (400, 300)), (75, (200, 150)), (8, (200, 150))])
def test_a_photograph_is_decoded_at_the_smallest_scale_with_twice_the_needed_side(
        side: int | None, expected: tuple[int, int], tmp_path: Path) -> None:
    picture = Image.fromarray(COLORED).resize((1600, 1200), Image.Resampling.BILINEAR)
    exif = Image.Exif()
    exif[0x0112] = 6  # a quarter turn
    picture.transpose(Image.Transpose.ROTATE_90).save(tmp_path / "a.jpg", exif=exif, quality=95)
    picture.save(tmp_path / "a.png")
    read = read_image(tmp_path / "a.jpg", side)
    assert read.size == expected
    smooth = picture.resize(expected, Image.Resampling.BOX)
    assert np.abs(np.asarray(read).astype(int) - np.asarray(smooth)).max() <= 6
    assert read_image(tmp_path / "a.png", side).size == (1600, 1200)  # other formats have no scales


@pytest.mark.parametrize("content", [b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 50 50\n", b"DDS " + bytes(124)])
def test_other_formats_are_rejected_with_any_extension(content: bytes, tmp_path: Path,
                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    """Pillow would pass PostScript to an external program."""
    monkeypatch.setattr(EpsImagePlugin, "gs_binary", "gs")
    monkeypatch.setattr(subprocess, "check_call", lambda *_args, **_rest: pytest.fail("a program was started"))
    for name in ("x.jpg", "y.png"):
        (tmp_path / name).write_bytes(content)
        Image.fromarray(COLORED).save(tmp_path / f"good-{name}")
    with pytest.raises(UserError, match="mine must be an image in one of the formats JPEG, PNG"):
        read_user_image(tmp_path / "x.jpg", "mine")
    dataset = catalog.load(str(tmp_path))
    assert len(dataset) == 2
    reasons = {skipped.file: skipped.reason for skipped in dataset.skipped}
    assert reasons == {"x.jpg": "not an image", "y.png": "not an image"}


@pytest.mark.parametrize("kind", ["alpha", "palette"])
def test_transparent_pixels_are_white(kind: str, tmp_path: Path) -> None:
    if kind == "alpha":
        image = Image.new("RGBA", (8, 8), (200, 0, 0, 255))
        image.paste((0, 0, 200, 0), (0, 0, 4, 8))
        image.save(tmp_path / "a.png")
    else:
        indexed = Image.new("P", (8, 8), 1)
        indexed.putpalette([0, 0, 200, 200, 0, 0])
        indexed.paste(0, (0, 0, 4, 8))
        indexed.save(tmp_path / "a.png", transparency=0)
    read = read_image(tmp_path / "a.png")
    assert read.getpixel((0, 0)) == (255, 255, 255)
    assert read.getpixel((7, 7)) == (200, 0, 0)


def test_nested_folders_belong_to_their_first_level_and_unicode_names_are_kept(tmp_path: Path) -> None:
    for name in ("Äpfel/rot/a b.png", "Äpfel/grün/ß.png", "日本/2024/03/x.PNG", "日本/.thumbs/hidden.png",
                 "__MACOSX/Äpfel/a.png"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(COLORED).save(path, "PNG")
    dataset = catalog.load(str(tmp_path))
    assert dataset.class_names == ("Äpfel", "日本")
    assert set(dataset.names) == {"Äpfel/rot/a b.png", "Äpfel/grün/ß.png", "日本/2024/03/x.PNG"}
    assert np.asarray(dataset.images[0]).shape == COLORED.shape
    assert not dataset.gray


def test_a_subfolder_with_only_damaged_images_is_not_a_class(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        for index in range(2):
            Image.fromarray(RAMP).save(tmp_path / name / f"{index}.png")
    for path in (tmp_path / "b").iterdir():
        path.write_bytes(path.read_bytes()[:40])
    dataset = catalog.load(str(tmp_path))
    assert dataset.class_names == ("a", "c")
    assert dataset.labels is not None
    assert dataset.labels.tolist() == [0, 0, 1, 1]
    assert [skipped.file for skipped in dataset.skipped] == ["b/0.png", "b/1.png"]


@pytest.mark.parametrize("name", ["~unknown-user/images", "a" * 3000, "images\0", " "])
def test_an_impossible_folder_name_is_rejected_like_an_unknown_name(name: str) -> None:
    with pytest.raises(UserError, match=r"There is no data set|got nothing"):
        catalog.load(name)
