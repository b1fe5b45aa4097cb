"""Data sets of products with an official division of the classes: Stanford Online Products and In-Shop."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from udml_core.base.paths import may_read
from udml_core.data.sources.listed import Listing
from udml_core.data.sources.official.layout import ListedLayout


class OnlineProducts(ListedLayout):
    """Stanford Online Products (H. O. Song et al., "Deep metric learning via lifted structured feature embedding").

    Ebay_train.txt has 11,318 classes, Ebay_test.txt 11,316 others.
    """

    official_name = "Stanford Online Products"
    published = (120_053, 22_634)
    expected = ("Ebay_train.txt and Ebay_test.txt (image_id class_id super_class_id path) beside the folders of "
                "images, such as bicycle_final/")
    advice = "Download Stanford_Online_Products.zip from https://cvgl.stanford.edu/projects/lifted_struct/."
    needed = ("Ebay_train.txt", "Ebay_test.txt")

    @classmethod
    def matches(cls, path: Path) -> bool:
        return any((path / name).is_file() for name in cls.needed)

    def read(self) -> Listing:
        halves = [[(row[3], row[1]) for row in self.read_rows(file, "image_id class_id super_class_id path", header=1)]
                  for file in self.needed]
        return divided_classes(self, halves, [f"product {text}" for half in halves for text in _distinct(half)])


class InShop(ListedLayout):
    """In-Shop Clothes Retrieval (Z. Liu et al., "DeepFashion", CVPR 2016).

    The test half holds the queries and the gallery, which have the same items. In the split zero-shot the evaluation
    has recall@k of the queries among the gallery too, the authors' protocol.
    """

    official_name = "In-Shop Clothes Retrieval"
    published = (52_712, 7_982)
    expected = ("Eval/list_eval_partition.txt (image_name item_id evaluation_status after two lines of header) and "
                "Img/img/, or list_eval_partition.txt and img/")
    advice = "Request the files at https://mmlab.ie.cuhk.edu.hk/projects/DeepFashion/InShopRetrieval.html."
    needed = ("Eval/list_eval_partition.txt|list_eval_partition.txt", "Img/img|img")

    @classmethod
    def matches(cls, path: Path) -> bool:
        for name in cls.needed[0].split("|"):
            if (path / name).is_file() and may_read(path / name):
                with (path / name).open(encoding="utf-8", errors="replace") as file:
                    return "item_id" in file.readline(1_000) + file.readline(1_000)
        return False

    def read(self) -> Listing:
        lists = next(name for name in self.needed[0].split("|") if (self.path / name).is_file())
        root = "Img/" if (self.path / "Img" / "img").is_dir() else ""
        rows = self.read_rows(lists, "image_name item_id evaluation_status", header=2)
        unknown = next((row[2] for row in rows if row[2] not in ("train", "query", "gallery")), None)
        if unknown is not None:
            raise self.damaged(f"the evaluation status in {lists} must be train, query or gallery, got '{unknown}'")
        parts = [[row for row in rows if (row[2] == "train") == is_training] for is_training in (True, False)]
        halves = [[(root + file, item) for file, item, _ in part] for part in parts]
        listing = divided_classes(self, halves, [item for half in halves for item in _distinct(half)])
        return replace(listing, queries=[status == "query" for part in parts for _, _, status in part])

    def describe(self) -> str:
        queries = sum(self.listing.queries or ())
        gallery = len(self.listing.files) - queries - sum(
            label < (self.listing.training_classes or 0) for label in self.listing.labels or ())
        return f"{super().describe()} Official protocol: {queries:,} queries and {gallery:,} gallery images."


def _distinct(half: list[tuple[str, str]]) -> list[str]:
    """Return the classes of a half in the order of the list."""
    return list(dict.fromkeys(name for _, name in half))


def divided_classes(source: ListedLayout, halves: list[list[tuple[str, str]]], class_names: list[str]) -> Listing:
    """Build a listing from a training and a test half that have different classes.

    Args:
        source: The data set.
        halves: Path and class of each image of the training half, then of the test half.
        class_names: Names of the training classes, then of the test classes.

    Raises:
        UserError: A class is in both halves.
    """
    train, test = map(_distinct, halves)
    shared = set(train) & set(test)
    if shared:
        raise source.damaged(f"the class {min(shared)} is in both halves of its lists")
    number_of = {name: number for number, name in enumerate(train + test)}
    images = [image for half in halves for image in half]
    return Listing([file for file, _ in images], [number_of[name] for _, name in images], class_names,
                   None, len(train))
