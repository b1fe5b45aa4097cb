"""Official layouts whose paths name the classes: FMD, Scene-15, Leeds Butterflies, Omniglot, PASCAL VOC."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.data.test_official_lists import classes_of, halves_of, write_images
from tests.running import spec, trained
from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.sources.image_folder import Folder
from udml_core.data.sources.official.layout import OfficialLayout
from udml_core.data.sources.official.trees import FlickrMaterials, Scene15, Voc2007
from udml_core.data.splits import default_split
from udml_core.runs.search import Query, Retrieval


def write_materials(folder: Path) -> Path:
    for place in FlickrMaterials.needed:
        material = place.split("/")[1]
        for kind in ("image", "mask"):
            write_images(folder / kind / material, f"{material}_moderate_001_new.jpg", f"{material}_object_002_new.jpg")
    (folder / "image" / "fabric" / "Thumbs.db").write_bytes(b"")
    return folder


def write_scenes(folder: Path) -> Path:
    for name in Scene15.needed:
        write_images(folder / name, "image_0001.jpg", "image_0002.jpg")
    return folder


def write_butterflies(folder: Path) -> Path:
    write_images(folder, "images/0010001.png", "images/0010002.png", "images/0100145.png",
                 "segmentations/0010001_seg0.png", "segmentations/0010002_seg0.png", "segmentations/0100145_seg0.png")
    (folder / "descriptions").mkdir()
    (folder / "descriptions" / "001.txt").write_text("Danaus plexippus\n")
    return folder


def write_omniglot(folder: Path) -> Path:
    write_images(folder, *(f"images_background/{path}" for path in (
        "Tagalog/character01/0001_01.png", "Tagalog/character02/0002_01.png", "Greek/character01/0400_01.png",
        "Greek/character01/0400_02.png")))
    write_images(folder, *(f"images_evaluation/{path}" for path in (
        "Angelic/character01/0965_01.png", "Angelic/character02/0966_01.png")))
    return folder


VOC_FLAGS = {("dog", 1): 1, ("person", 1): 1, ("dog", 2): 1, ("person", 3): 1, ("chair", 3): 0, ("tvmonitor", 4): 1}
"""Which classes an image of the fixture has; 0 is an object that is difficult to recognize."""


def write_voc(folder: Path) -> Path:
    root = folder / "VOCdevkit" / "VOC2007"
    write_images(root / "JPEGImages", *(f"00000{number}.jpg" for number in range(1, 5)))
    write_images(root / "SegmentationClass", "000001.png")
    (root / "ImageSets" / "Main").mkdir(parents=True)
    lists = root / "ImageSets" / "Main"
    for half, numbers in (("trainval", (2, 4)), ("test", (1, 3))):
        (lists / f"{half}.txt").write_text("".join(f"00000{number}\n" for number in numbers))
        for name in Voc2007.names:
            flags = [VOC_FLAGS.get((name, number), -1) for number in numbers]
            (lists / f"{name}_{half}.txt").write_text("".join(
                f"00000{number} {flag:2}\n" for number, flag in zip(numbers, flags, strict=True)))
    return folder / "VOCdevkit"


def test_materials_are_the_images_without_the_masks(tmp_path: Path) -> None:
    dataset = catalog.load(str(write_materials(tmp_path)))
    assert dataset.class_names[:3] == ("fabric", "foliage", "glass")
    assert dataset.class_sizes.tolist() == [2] * 10
    assert all(name.startswith("image/") for name in dataset.names)
    assert classes_of(dataset) == [name.split("/")[1] for name in dataset.names]


def test_scenes_have_fifteen_classes_and_other_folders_are_left_out(tmp_path: Path) -> None:
    folder = write_scenes(tmp_path)
    write_images(folder / "features", "plot.png")
    dataset = catalog.load(str(folder))
    assert sorted(dataset.class_names) == sorted(Scene15.needed)
    assert classes_of(dataset) == [name.split("/")[0] for name in dataset.names]
    assert len(dataset) == 30


def test_the_species_of_a_butterfly_is_in_its_file_name(tmp_path: Path) -> None:
    folder = write_butterflies(tmp_path)
    dataset = catalog.load(str(folder))
    assert classes_of(dataset) == ["001 Danaus plexippus", "001 Danaus plexippus", "010 Vanessa cardui"]
    write_images(folder, "images/0110001.png")
    with pytest.raises(UserError, match=r"images/0110001.png is not named by seven digits that begin with 001 to 010"):
        catalog.load(str(folder))


def test_the_background_alphabets_of_omniglot_are_the_training_half(tmp_path: Path) -> None:
    dataset = catalog.load(str(write_omniglot(tmp_path)))
    assert dataset.class_names == ("Greek/character01", "Tagalog/character01", "Tagalog/character02",
                                   "Angelic/character01", "Angelic/character02")
    assert dataset.class_sizes.tolist() == [2, 1, 1, 1, 1]
    train, test = halves_of(dataset, "zero-shot")
    assert train == ["0400_01.png", "0400_02.png", "0001_01.png", "0002_01.png"], "Angelic is first by name only"
    assert test == ["0965_01.png", "0966_01.png"]


def test_voc_has_several_classes_for_an_image_and_the_official_halves(tmp_path: Path) -> None:
    folder = write_voc(tmp_path)
    dataset, source = catalog.load(str(folder)), catalog.find(str(folder))
    assert dataset.labels is None
    assert dataset.evaluation_classes is not None
    classes = {(dataset.class_names[number], int(Path(dataset.names[row]).stem))
               for row, number in np.argwhere(dataset.evaluation_classes)}
    assert classes == {key for key, flag in VOC_FLAGS.items() if flag == 1}, "difficult objects do not count"
    assert [dataset.caption(row) for row in (1, 2)] == ["tvmonitor · JPEGImages/000004.jpg",
                                                       "dog, person · JPEGImages/000001.jpg"]
    assert halves_of(dataset, "seen") == [["000002.jpg", "000004.jpg"], ["000001.jpg", "000003.jpg"]]
    assert default_split(dataset) == "seen"
    assert isinstance(source, OfficialLayout)
    assert source.describe() == ("PASCAL VOC 2007: 4 images in 20 classes (published: 9,963 images in 20 classes). "
                                 "Official division: 2 training and 2 test images. An image can have several classes, "
                                 "so methods train without labels, and the evaluation counts an image as a hit for "
                                 "each class that it shares with the query.")
    lists = folder / "VOC2007" / "ImageSets" / "Main"
    (lists / "dog_test.txt").write_text("000001 -1\n000003 1\n")
    assert catalog.load(str(folder)).fingerprint != dataset.fingerprint
    (lists / "dog_test.txt").write_text("000001 yes\n000003 1\n")
    with pytest.raises(UserError, match=r"dog_test\.txt must have 1, 0 or -1 for each image, got 'yes'"):
        catalog.load(str(folder))
    (lists / "dog_test.txt").unlink()
    with pytest.raises(UserError, match=r"ImageSets/Main/dog_test\.txt is missing"):
        catalog.load(str(folder))
    (lists / "test.txt").unlink()
    assert len(catalog.load(str(folder))) == 2, "the archive of the training images comes alone"


def test_voc_is_found_below_the_folder_of_its_archive(tmp_path: Path) -> None:
    write_voc(tmp_path / "VOC")
    source = catalog.find(str(tmp_path / "VOC"))
    assert isinstance(source, Voc2007)
    assert source.path == tmp_path / "VOC" / "VOCdevkit" / "VOC2007"
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "VOC").rename(tmp_path / "a" / "b" / "VOC")
    assert isinstance(catalog.find(str(tmp_path / "a" / "b")), Voc2007), "three levels down"
    assert isinstance(catalog.find(str(tmp_path / "a")), Folder), "four levels down"


def test_methods_on_voc_train_without_labels_and_the_evaluation_counts_shared_classes(tmp_path: Path) -> None:
    name = str(write_voc(tmp_path))
    with pytest.raises(UserError, match=r"NML learns from one class for each image, and .* has classes for the "
                                        r"evaluation only, .*\. Choose a method that learns without labels, or give"):
        spec("nml", name)
    with pytest.raises(UserError, match="The zero-shot split needs one class for each image"):
        spec("frozen", name, "zero-shot")
    run = trained(tmp_path / "runs", method="frozen", dataset=name)
    evaluation = run.evaluation()
    assert evaluation is not None
    # dog and chair have one query or none in the test half; of person, each of the two is the other's only neighbor
    assert evaluation["final"]["mprec@1"] == pytest.approx(50)
    assert not {"recall@1", "map@r", "knn@200"} & evaluation["final"].keys()
    retrieval = Retrieval(run)
    assert [retrieval.is_correct(Query((2,)), index) for index in range(4)] == [True, False, True, True]


@pytest.mark.parametrize(("write", "name", "part"), [
    (write_materials, "Flickr Material Database", "image/water"), (write_scenes, "Scene-15", "PARoffice"),
    (write_omniglot, "Omniglot", "images_evaluation"),
    (write_voc, "PASCAL VOC 2007", "VOC2007/ImageSets/Main/trainval.txt")])
def test_an_incomplete_layout_names_the_missing_part(
        write: Callable[[Path], Path], name: str, part: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "data")
    (folder / part).rename(tmp_path / "away")
    missing = part.removeprefix("VOC2007/")
    with pytest.raises(UserError, match=f"looks like {name}, but {missing} is missing. Expected:"):
        catalog.load(str(folder))


def test_ordinary_folders_are_not_taken_for_a_layout(tmp_path: Path) -> None:
    write_images(tmp_path, "images/cats/1.png", "images/dogs/2.png", "train/cats/3.png", "test/cats/4.png",
                 "image/5.png", "bedroom/6.png", "kitchen/7.png", "JPEGImages/8.jpg")
    assert not isinstance(catalog.find(str(tmp_path)), OfficialLayout)
