"""The exclusion list: adding, removing, undoing, files of names, and writers that were killed."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Thread

import pytest

from tests.running import write_clothes
from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.data.given import exclusions
from udml_core.data.given.exclusions import (
    KIND,
    can_undo,
    digest_of,
    exclude,
    excluded_images,
    excluded_names,
    excluding_files,
    include,
    parse_list,
    read_list,
    switch_file,
    undo,
    write_list,
)
from udml_core.data.given.log import append_to_log, log_path_of


@pytest.fixture
def digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    return catalog.load("digits")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of two classes with three images each, a/0.png to b/5.png."""
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    return write_clothes(tmp_path / "mine", "aaabbb")


def test_a_long_list_is_read_in_a_time_that_is_proportional_to_its_length(digits: Dataset) -> None:
    names = [digits.names[5], *(f"image {number} of another folder" for number in range(20_000))]
    append_to_log(digits, KIND, {"exclude": names})
    append_to_log(digits, KIND, {"include": names[1:]})
    begun = time.process_time()
    assert excluded_images(digits).tolist() == [5]
    assert time.process_time() - begun < 2  # a pass through all names for each name takes ten times as long


def test_images_are_excluded_included_and_undone_in_the_order_of_the_actions(digits: Dataset) -> None:
    assert not can_undo(digits)
    assert exclude(digits, [7, 3, 7]) == 2
    assert exclude(digits, [3, 9]) == 1  # 3 is on the list already
    assert excluded_images(digits).tolist() == [3, 7, 9]
    assert include(digits, [3, 100]) == 1
    assert excluded_names(digits) == (digits.names[7], digits.names[9])
    assert undo(digits) == 1
    assert excluded_images(digits).tolist() == [3, 7, 9]
    assert undo(digits) == 1
    assert excluded_images(digits).tolist() == [3, 7]
    assert can_undo(digits)
    assert undo(digits) == 2
    assert excluded_images(digits).tolist() == []
    assert undo(digits) == 0
    assert not can_undo(digits)
    assert len(log_path_of(digits, "exclusions").read_bytes().splitlines()) == 6  # the log is never rewritten


def test_an_action_that_changes_nothing_is_not_stored(digits: Dataset) -> None:
    exclude(digits, [4])
    assert exclude(digits, [4]) == 0
    assert include(digits, [5]) == 0
    assert undo(digits) == 1
    assert excluded_images(digits).tolist() == []


def test_undo_of_an_exclusion_keeps_what_an_earlier_action_excluded(digits: Dataset) -> None:
    exclude(digits, [1])
    include(digits, [1])
    exclude(digits, [1, 2])
    assert undo(digits) == 2
    assert excluded_images(digits).tolist() == []
    undo(digits)
    assert excluded_images(digits).tolist() == [1]


@pytest.mark.parametrize("tail", [b'{"exclude": ["digit 8', b"\xff\xfe\x00\n", b'{"exclude": 3}\n',
                                  b'{"exclude": [3]}\n[]\n'], ids=["cut", "binary", "number", "not names"])
def test_a_writer_that_was_killed_or_a_damaged_line_loses_no_other_action(tail: bytes, digits: Dataset) -> None:
    exclude(digits, [5])
    path = log_path_of(digits, "exclusions")
    path.write_bytes(path.read_bytes() + tail)
    assert excluded_images(digits).tolist() == [5]
    exclude(digits, [6])
    assert excluded_images(digits).tolist() == [5, 6]
    undo(digits)
    assert excluded_images(digits).tolist() == [5]


def test_windows_that_write_at_once_lose_nothing(digits: Dataset) -> None:
    threads = [Thread(target=exclude, args=(digits, [image])) for image in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert excluded_images(digits).tolist() == list(range(12))


def test_the_list_stays_when_an_image_is_added_and_when_the_folder_moves(folder: Path) -> None:
    before = catalog.load(str(folder))
    exclude(before, [1, 4])
    (folder / "a" / "0.png").rename(folder / "b" / "6.png")  # every later image has another index now
    after = catalog.load(str(folder))
    assert excluded_names(after) == ("a/1.png", "b/4.png")
    assert excluded_images(after).tolist() == [0, 3]
    (folder / "a" / "1.png").unlink()
    assert excluded_names(catalog.load(str(folder))) == ("b/4.png",)
    moved = folder.rename(folder.with_name("moved"))
    assert excluded_names(catalog.load(str(moved))) == ("b/4.png",)


def test_a_list_is_exported_and_imported(digits: Dataset, tmp_path: Path) -> None:
    exclude(digits, [2, 11])
    path = tmp_path / "list.csv"
    path.write_bytes(write_list(digits))
    assert path.read_bytes() == b"image\r\ndigit 2\r\ndigit 11\r\n"
    assert read_list(path, digits).images.tolist() == [2, 11]


def test_names_with_commas_quotes_and_line_breaks_survive_the_file(folder: Path) -> None:
    odd = folder / "a" / 'one, "two"\nthree.png'
    (folder / "a" / "1.png").rename(odd)
    dataset = catalog.load(str(folder))
    index = dataset.names.index('a/one, "two"\nthree.png')
    exclude(dataset, [index])
    assert parse_list(write_list(dataset), "list.csv", dataset).images.tolist() == [index]


def test_the_list_of_a_page_with_further_columns_is_read_and_unknown_names_are_reported(digits: Dataset) -> None:
    content = "\ufeffindex,image,class\n0,digit 4,4\n1,../../etc/passwd,x\n2\n3,,y\n4,digit 4,4\n5,digit 1,1\n".encode()
    read = parse_list(content, "list.csv", digits)
    assert read.images.tolist() == [1, 4]
    assert read.unknown == ("../../etc/passwd",)


@pytest.mark.parametrize("header", ["index;Image;class", "Index\tIMAGE\tclass", "index,Image,class"])
def test_a_list_of_a_spreadsheet_is_read(header: str, digits: Dataset) -> None:
    separator = header[5]
    content = "\r\n".join([header, separator.join(["0", "digit 4", "4"]), separator.join(["1", "digit 7", "7"])])
    assert parse_list(content.encode(), "list.csv", digits).images.tolist() == [4, 7]


@pytest.mark.parametrize(("content", "words"), [
    (b"", "has the columns none"),
    (b"digit 1\ndigit 2\n", "has the columns digit 1"),
    (b"image\n", "names no image of"),
    (b"image\n/etc/passwd\n", "its first name is '/etc/passwd'"),
    ("image\nZürich.png\n".encode("latin-1"), "could not be read: 'utf-8' codec"),
    ("image\ndigit 1\n".encode("utf-16"), "could not be read: 'utf-8' codec"),
    (b'image\n"' + b"x" * 200_000 + b'"\n', "field larger than field limit"),
    (b"x" * 4000 + b",y\n", "has the columns " + "x" * 100 + ". Expected"),
], ids=["empty", "no header", "no name", "path", "latin-1", "utf-16", "huge field", "long header"])
def test_a_file_that_is_no_list_is_refused_in_one_sentence(content: bytes, words: str, digits: Dataset) -> None:
    with pytest.raises(UserError) as error:
        parse_list(content, "list.csv", digits)
    assert words in str(error.value)
    assert len(str(error.value)) < 500


def test_a_file_that_is_too_long_is_refused_before_it_is_read(digits: Dataset, tmp_path: Path,
                                                             monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "long.csv"
    with path.open("wb") as file:
        file.truncate(exclusions.MOST_BYTES + 1)  # takes no space
    with pytest.raises(UserError, match=r"has 32,000,001 bytes, and at most 32,000,000 are read"):
        read_list(path, digits)
    with pytest.raises(UserError, match="could not be read"):
        read_list(tmp_path / "missing.csv", digits)
    monkeypatch.setattr(exclusions, "MOST_BYTES", 10)
    with pytest.raises(UserError, match="has 14 bytes, and at most 10"):
        parse_list(b"image\ndigit 1\n", "list.csv", digits)


def test_the_digest_depends_on_the_names_alone() -> None:
    # printf '["a", "b"]' | sha256sum
    assert digest_of(["b", "a"]) == "3554d2b8a1e34099053865de8576d1460b807430ec8c6b85315c9607ba93d308"
    assert digest_of(["ab"]) != digest_of(["a", "b"])


def test_names_that_spreadsheets_would_run_survive_the_file_and_do_not_run(folder: Path) -> None:
    (folder / "=a").mkdir()
    (folder / "a" / "1.png").rename(folder / "=a" / "+1.png")
    dataset = catalog.load(str(folder))
    index = dataset.names.index("=a/+1.png")
    exclude(dataset, [index])
    content = write_list(dataset)
    assert content == b"image\r\n'=a/+1.png\r\n"
    assert parse_list(content, "list.csv", dataset).images.tolist() == [index]
    assert parse_list(b"image\r\n=a/+1.png\r\n", "own.csv", dataset).images.tolist() == [index]


def test_an_imported_list_is_switched_off_and_on(digits: Dataset) -> None:
    exclude(digits, [3])
    assert exclude(digits, [3, 5, 7], "issues.csv") == 2
    assert excluding_files(digits) == {"issues.csv": (3, True)}
    switch_file(digits, "issues.csv", False)
    assert excluded_images(digits).tolist() == [3], "what the user excluded stays"
    assert excluding_files(digits) == {"issues.csv": (3, False)}
    assert undo(digits) == 3
    assert excluded_images(digits).tolist() == [3, 5, 7]
    switch_file(digits, "issues.csv", False)
    switch_file(digits, "issues.csv", True)
    include(digits, [5])
    assert excluded_images(digits).tolist() == [3, 7]
    assert excluding_files(digits) == {"issues.csv": (2, True)}
    switch_file(digits, "issues.csv", False)
    exclude(digits, [9], "issues.csv")
    assert excluded_images(digits).tolist() == [3, 7, 9], "another import switches the list on"
    append_to_log(digits, KIND, {"switch": 7, "on": False})
    append_to_log(digits, KIND, {"exclude": [digits.names[11]], "file": ["x"]})
    assert excluded_images(digits).tolist() == [3, 7, 9, 11], "a damaged line is skipped, or counts as it can"
