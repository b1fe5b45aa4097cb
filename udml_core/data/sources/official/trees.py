"""Data sets whose folders and file names say the classes: FMD, Scene-15, Leeds Butterflies, Omniglot, PASCAL VOC."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from udml_core.base.arrays import Booleans
from udml_core.base.errors import quoted
from udml_core.data.sources.listed import SEVERAL_CLASSES, Listing
from udml_core.data.sources.listing import listed
from udml_core.data.sources.official.layout import ListedLayout


class TreeLayout(ListedLayout):
    """A layout in which the paths of the images name the classes."""

    def listing_by(self, folders: tuple[str, ...], class_of: Callable[[str], str | None]) -> Listing:
        """List the images below a folder, or below the folders of the training and of the test classes.

        Args:
            folders: One or two folders; "" is the data set's own folder.
            class_of: Returns the class of a path; None if it is not an image of the data set.
        """
        groups = []
        for folder in folders:
            inside = sorted(f"{folder}/{file}".lstrip("/") for file, _ in listed(self.path / folder))
            groups.append([(file, name) for file in inside if (name := class_of(file)) is not None])
        names = [name for group in groups for name in sorted({name for _, name in group})]
        number_of = {name: number for number, name in enumerate(names)}
        if len(names) < 2:
            raise self.damaged("it has images of fewer than two classes")
        images = [image for group in groups for image in group]
        first = len({name for _, name in groups[0]}) if len(groups) > 1 else None
        return Listing([file for file, _ in images], [number_of[name] for _, name in images], names,
                       training_classes=first)


class FlickrMaterials(TreeLayout):
    """Flickr Material Database (L. Sharan et al., 2009): image/CLASS/*.jpg beside masks, which are not images."""

    official_name = "Flickr Material Database"
    published = (1_000, 10)
    expected = "image/fabric/*.jpg and nine other folders in image/, beside mask/"
    advice = "Download FMD.zip from https://people.csail.mit.edu/lavanya/fmd.html."
    needed = tuple(f"image/{name}" for name in ("fabric", "foliage", "glass", "leather", "metal", "paper", "plastic",
                                                "stone", "water", "wood"))

    @classmethod
    def matches(cls, path: Path) -> bool:
        return sum((path / name).is_dir() for name in cls.needed) > 5

    def read(self) -> Listing:
        return self.listing_by(("image",), lambda file: file.split("/")[1] if file.count("/") == 2 else None)


class Scene15(TreeLayout):
    """Scene-15 (S. Lazebnik et al., "Beyond bags of features", CVPR 2006): CLASS/image_0001.jpg."""

    official_name = "Scene-15"
    published = (4_485, 15)
    expected = "bedroom/image_0001.jpg and 14 other folders, such as CALsuburb/ and MITcoast/"
    advice = "Download scene_categories.zip, which S. Lazebnik's pages offer."
    needed = ("bedroom", "CALsuburb", "industrial", "kitchen", "livingroom", "MITcoast", "MITforest", "MIThighway",
              "MITinsidecity", "MITmountain", "MITopencountry", "MITstreet", "MITtallbuilding", "PARoffice", "store")

    @classmethod
    def matches(cls, path: Path) -> bool:
        return sum((path / name).is_dir() for name in cls.needed) > 10

    def read(self) -> Listing:
        return self.listing_by(("",), lambda file: name if (name := file.split("/")[0]) in self.needed else None)


class LeedsButterflies(TreeLayout):
    """Leeds Butterflies (J. Wang et al., BMVC 2009): the first three digits of images/0010001.png are the species."""

    official_name = "Leeds Butterflies"
    published = (832, 10)
    expected = "images/0010001.png (three digits for the species, four for the image), segmentations/ and descriptions/"
    advice = "Download leedsbutterfly_dataset.zip from https://www.josiahwang.com/dataset/leedsbutterfly/."
    needed = ("images",)
    species = ("Danaus plexippus", "Heliconius charitonius", "Heliconius erato", "Junonia coenia", "Lycaena phlaeas",
               "Nymphalis antiopa", "Papilio cresphontes", "Pieris rapae", "Vanessa atalanta", "Vanessa cardui")

    @classmethod
    def matches(cls, path: Path) -> bool:
        return ((path / "descriptions" / "001.txt").is_file() or (path / "segmentations").is_dir()) and any(
            (path / "images").glob("001????.png"))

    def read(self) -> Listing:
        return self.listing_by(("images",), self._species_of)

    def _species_of(self, file: str) -> str:
        stem = file.rpartition("/")[2].rpartition(".")[0]
        if len(stem) != 7 or not stem.isdecimal() or not 1 <= int(stem[:3]) <= len(self.species):
            raise self.damaged(f"{file} is not named by seven digits that begin with 001 to 010")
        return f"{stem[:3]} {self.species[int(stem[:3]) - 1]}"


class Omniglot(TreeLayout):
    """Omniglot (B. Lake et al., Science 2015): the background alphabets train, the evaluation alphabets test."""

    official_name = "Omniglot"
    published = (32_460, 1_623)
    expected = "images_background/ALPHABET/character01/*.png and images_evaluation/ALPHABET/character01/*.png"
    advice = "Download images_background.zip and images_evaluation.zip from https://github.com/brendenlake/omniglot."
    needed = ("images_background", "images_evaluation")

    @classmethod
    def matches(cls, path: Path) -> bool:
        return any((path / name).is_dir() for name in cls.needed)

    def read(self) -> Listing:
        return self.listing_by(self.needed, lambda file: "/".join(file.split("/")[1:3])
                               if file.count("/") == 3 else None)


class Voc2007(ListedLayout):
    """PASCAL VOC 2007 (M. Everingham et al., IJCV 2010), whose images have one or several of 20 classes.

    The lists of the classes say 1 for an object of the class, 0 for an object that is difficult to recognize, and −1.
    Difficult objects do not count, as in the authors' evaluation.
    """

    official_name = "PASCAL VOC 2007"
    published = (9_963, 20)
    expected = ("JPEGImages/000001.jpg and in ImageSets/Main/ trainval.txt and aeroplane_trainval.txt to "
                "tvmonitor_trainval.txt, and test.txt and aeroplane_test.txt to tvmonitor_test.txt if the test images "
                "are there")
    advice = ("Download VOCtrainval_06-Nov-2007.tar and VOCtest_06-Nov-2007.tar from "
              "http://host.robots.ox.ac.uk/pascal/VOC/voc2007/.")
    names = ("aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow", "diningtable",
             "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train", "tvmonitor")
    needed: tuple[str, ...] = ("JPEGImages", "ImageSets/Main/trainval.txt",
                               *(f"ImageSets/Main/{name}_trainval.txt" for name in names))

    def __init__(self, path: Path, name: str | None = None, option: tuple[str, str] | None = None) -> None:
        super().__init__(path, name, option)
        if (self.path / "ImageSets/Main/test.txt").is_file():
            self.needed += ("ImageSets/Main/test.txt", *(f"ImageSets/Main/{name}_test.txt" for name in self.names))

    @classmethod
    def matches(cls, path: Path) -> bool:
        return (path / "JPEGImages").is_dir() and (path / "ImageSets" / "Main").is_dir()

    def read(self) -> Listing:
        halves = ["trainval", *(["test"] if "ImageSets/Main/test.txt" in self.needed else [])]
        numbers = [self.read_lines(f"ImageSets/Main/{half}.txt") for half in halves]
        classes = [self._classes(half, images) for half, images in zip(halves, numbers, strict=True)]
        in_test = [half == "test" for half, images in zip(halves, numbers, strict=True) for _ in images]
        return Listing([f"JPEGImages/{number}.jpg" for images in numbers for number in images],
                       class_names=self.names, in_test=in_test if len(halves) > 1 else None,
                       evaluation_classes=np.concatenate(classes))

    def _classes(self, half: str, images: list[str]) -> Booleans:
        """Read which classes each image of a half has, (n, 20)."""
        columns = []
        for name in self.names:
            file = f"ImageSets/Main/{name}_{half}.txt"
            flags = self.look_up(self.read_by_id(file, "image flag"), images, file)
            unknown = next((flag for flag in flags if flag not in ("1", "0", "-1")), None)
            if unknown is not None:
                raise self.damaged(f"{file} must have 1, 0 or -1 for each image, got {quoted(unknown)}")
            columns.append([flag == "1" for flag in flags])
        return np.array(columns, dtype=bool).T

    def describe(self) -> str:
        return f"{super().describe()} {SEVERAL_CLASSES}"
