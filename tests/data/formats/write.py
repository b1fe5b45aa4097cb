"""Write the small data sets of this folder with the libraries whose formats are read.

The tests read the written files, so that they need none of these libraries. `versions.json` names the version of each.

    python tests/data/formats/write.py NAME     in an environment with the library of this format
"""

from __future__ import annotations

import csv
import importlib.metadata
import io
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from PIL import Image

HERE = Path(__file__).parent
CLASSES = ("cat", "dog")
COLORS = {"cat": (200, 40, 40), "dog": (40, 40, 200)}
SIDE = 12


def image(number: int) -> Image.Image:
    """Return the image of a number: a class's color, darker from image to image."""
    return Image.new("RGB", (SIDE, SIDE), tuple(value - 5 * number for value in COLORS[CLASSES[number % 2]]))


def png(number: int) -> bytes:
    content = io.BytesIO()
    image(number).save(content, "PNG")
    return content.getvalue()


def write_files(folder: Path, count: int = 4) -> list[str]:
    """Write PNG files and return their names."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"{number}.png" for number in range(count)]
    for number, name in enumerate(names):
        (folder / name).write_bytes(png(number))
    return names


def hugging_face(start: int, count: int):
    import datasets

    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=list(CLASSES)),
                                  "size": datasets.Value("float64")})
    rows = range(start, start + count)
    return datasets.Dataset.from_dict({
        "image": [{"bytes": png(number), "path": f"{number}.png"} for number in rows],
        "label": [number % 2 for number in rows], "size": [number / 2 for number in rows]}, features=features)


def write_parquet(folder: Path) -> None:
    for half, start, count in (("train", 0, 4), ("test", 4, 2)):
        hugging_face(start, count).to_parquet(folder / "data" / f"{half}-00000-of-00001.parquet")


def write_arrow(folder: Path) -> None:
    import datasets

    datasets.DatasetDict({"train": hugging_face(0, 4), "test": hugging_face(4, 2)}).save_to_disk(folder)
    datasets.load_from_disk(str(folder / "train")).filter(lambda row: row["label"] == 1)  # keeps a cache file beside


def write_several_classes(folder: Path) -> None:
    """Write images with paths of a computer, lists of classes, and a second column of images."""
    import datasets

    features = datasets.Features({"photo": datasets.Image(), "mask": datasets.Image(),
                                  "labels": datasets.Sequence(datasets.ClassLabel(names=list(CLASSES)))})
    datasets.Dataset.from_dict({
        "photo": [{"bytes": png(number), "path": f"/home/ann/{CLASSES[number % 2]}/{number // 2}.png"}
                  for number in range(4)],
        "mask": [{"bytes": png(0), "path": None}] * 4, "labels": [[0], [1], [0, 1], []]}, features=features
        ).to_parquet(folder / "photos.parquet")


def write_webdataset(folder: Path) -> None:
    import webdataset

    for half, rows in (("train", range(4)), ("test", range(4, 6))):
        with webdataset.TarWriter(str(folder / f"photos-{half}-000000.tar")) as shard:
            for number in rows:
                shard.write({"__key__": f"{number:06}", "png": png(number), "cls": number % 2,
                             "json": {"size": number / 2, "color": list(COLORS[CLASSES[number % 2]])}})


def write_webdataset_gz(folder: Path) -> None:
    """Write shards that gzip compresses: one with classes, one with captions, one with images alone."""
    import webdataset

    for name, beside in (("photos-train-000000.tar.gz", "cls"), ("captions/000000.tar", "txt"),
                         ("images/000000.tgz", "")):
        (folder / name).parent.mkdir(exist_ok=True)
        with webdataset.TarWriter(str(folder / name), compress=name.endswith("gz")) as shard:
            for number in range(4):
                about = {"cls": {"cls": number % 2}, "txt": {"txt": f"a {CLASSES[number % 2]}"}, "": {}}[beside]
                shard.write({"__key__": f"{number:06}", "png": png(number), **about})


def write_lance(folder: Path) -> None:
    import lancedb
    import pyarrow as pa

    table = pa.table({"image": pa.array([png(number) for number in range(6)], pa.binary()),
                      "label": [CLASSES[number % 2] for number in range(6)],
                      "vector": pa.array([[float(number), 1.0] for number in range(6)], pa.list_(pa.float32(), 2))})
    lancedb.connect(folder).create_table("photos", table)


def write_imagefolder(folder: Path) -> None:
    """Write files as `datasets` documents for ImageFolder, and read them with it."""
    import datasets

    names = write_files(folder)
    lines = [json.dumps({"file_name": name, "label": CLASSES[number % 2], "size": number / 2})
             for number, name in enumerate(names)]
    (folder / "metadata.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    read = datasets.load_dataset("imagefolder", data_dir=str(folder), split="train", cache_dir=str(folder / "cache"))
    assert read["label"][:] == [CLASSES[number % 2] for number in range(4)]
    shutil.rmtree(folder / "cache")


def write_fiftyone(folder: Path) -> None:
    """Write with FiftyOne's exporter, which `dataset.export` calls; a dataset itself needs MongoDB."""
    from fiftyone.core.labels import Classification
    from fiftyone.utils.data.exporters import FiftyOneImageClassificationDatasetExporter

    names = write_files(folder / "source")
    with FiftyOneImageClassificationDatasetExporter(export_dir=str(folder), classes=list(CLASSES),
                                                    include_confidence=True) as exporter:
        for number, name in enumerate(names):
            exporter.export_sample(str(folder / "source" / name),
                                   Classification(label=CLASSES[number % 2], confidence=number / 4))
    shutil.rmtree(folder / "source")


def write_croissant(folder: Path) -> None:
    import hashlib

    import mlcroissant as mlc

    names = write_files(folder / "images")
    with (folder / "photos.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("photo", "species", "size"),
                                    *((name, CLASSES[number % 2], number / 2) for number, name in enumerate(names))])
    digest = hashlib.sha256((folder / "photos.csv").read_bytes()).hexdigest()
    fields = [mlc.Field(id="photos/file", name="file", data_types=mlc.DataType.TEXT, source=mlc.Source(
                  file_set="images", extract=mlc.Extract(file_property="filename")),
                  references=mlc.Source(file_object="table", extract=mlc.Extract(column="photo"))),
              mlc.Field(id="photos/content", name="content", data_types=mlc.DataType.IMAGE_OBJECT, source=mlc.Source(
                  file_set="images", extract=mlc.Extract(file_property="content"))),
              mlc.Field(id="photos/label", name="label", data_types=mlc.DataType.TEXT, source=mlc.Source(
                  file_object="table", extract=mlc.Extract(column="species"))),
              mlc.Field(id="photos/size", name="size", data_types=mlc.DataType.FLOAT, source=mlc.Source(
                  file_object="table", extract=mlc.Extract(column="size")))]
    description = mlc.Metadata(
        name="photos", description="Four images.", url="https://example.org/photos",
        license="https://creativecommons.org/publicdomain/zero/1.0/",
        distribution=[mlc.FileObject(id="table", name="table", content_url="photos.csv", encoding_formats=["text/csv"],
                                     sha256=digest),
                      mlc.FileSet(id="images", name="images", encoding_formats=["image/png"],
                                  includes=["images/*.png"])],
        record_sets=[mlc.RecordSet(id="photos", name="photos", fields=fields)])
    (folder / "croissant.json").write_text(json.dumps(description.to_json(), indent=1, default=str) + "\n",
                                           encoding="utf-8")
    rows = list(mlc.Dataset(str(folder / "croissant.json")).records("photos"))
    assert len(rows) == 4
    assert {row["photos/label"] for row in rows} == {name.encode() for name in CLASSES}


def write_croissant_paths(folder: Path) -> None:
    """Write a description of a table alone, one column of which has the paths of the images."""
    import hashlib

    import mlcroissant as mlc

    names = write_files(folder / "images")
    with (folder / "photos.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("path", "label"), *((f"images/{name}", CLASSES[number % 2])
                                                         for number, name in enumerate(names))])
    digest = hashlib.sha256((folder / "photos.csv").read_bytes()).hexdigest()
    fields = [mlc.Field(id=f"photos/{name}", name=name, data_types=mlc.DataType.TEXT, source=mlc.Source(
        file_object="table", extract=mlc.Extract(column=name))) for name in ("path", "label")]
    describe(folder, fields, mlc.FileObject(id="table", name="table", content_url="photos.csv",
                                            encoding_formats=["text/csv"], sha256=digest))


def write_croissant_parquet(folder: Path) -> None:
    """Write Parquet files as Hugging Face describes them: a set of files, whose columns are the fields."""
    import mlcroissant as mlc

    for half, start, count in (("train", 0, 4), ("test", 4, 2)):
        hugging_face(start, count).to_parquet(folder / "default" / half / "0000.parquet")
    content = mlc.Extract(column="image")
    fields = [mlc.Field(id="photos/image", name="image", data_types=mlc.DataType.IMAGE_OBJECT, source=mlc.Source(
                  file_set="files", extract=content, transforms=[mlc.Transform(json_path="bytes")])),
              mlc.Field(id="photos/label", name="label", data_types=mlc.DataType.INTEGER, source=mlc.Source(
                  file_set="files", extract=mlc.Extract(column="label")))]
    describe(folder, fields, mlc.FileSet(id="files", name="files", encoding_formats=["application/x-parquet"],
                                         includes=["default/*/*.parquet"]))


def describe(folder: Path, fields: list, part) -> None:
    """Write a Croissant description of one file or set of files, and read it with its library."""
    import mlcroissant as mlc

    description = mlc.Metadata(
        name="photos", description="Images.", url="https://example.org/photos", distribution=[part],
        license="https://creativecommons.org/publicdomain/zero/1.0/",
        record_sets=[mlc.RecordSet(id="photos", name="photos", fields=fields)])
    (folder / "croissant.json").write_text(json.dumps(description.to_json(), indent=1, default=str) + "\n",
                                           encoding="utf-8")
    assert len(list(mlc.Dataset(str(folder / "croissant.json")).records("photos"))) >= 4


def write_heic(folder: Path) -> None:
    import pillow_heif

    pillow_heif.register_heif_opener()
    for number in range(4):
        (folder / CLASSES[number % 2]).mkdir(exist_ok=True)
        image(number).resize((64, 64)).save(folder / CLASSES[number % 2] / f"{number}.heic", quality=90)


def write_avif(folder: Path) -> None:
    for number in range(4):
        (folder / CLASSES[number % 2]).mkdir(exist_ok=True)
        image(number).save(folder / CLASSES[number % 2] / f"{number}.avif", quality=90)


FORMATS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "parquet": ("datasets", write_parquet), "arrow": ("datasets", write_arrow),
    "webdataset": ("webdataset", write_webdataset), "lance": ("lancedb", write_lance),
    "imagefolder": ("datasets", write_imagefolder), "fiftyone": ("fiftyone", write_fiftyone),
    "croissant": ("mlcroissant", write_croissant), "croissant-paths": ("mlcroissant", write_croissant_paths),
    "croissant-parquet": ("mlcroissant", write_croissant_parquet),
    "several-classes": ("datasets", write_several_classes),
    "webdataset-gz": ("webdataset", write_webdataset_gz), "heic": ("pillow-heif", write_heic),
    "avif": ("pillow", write_avif)}
"""Library and function of each folder."""


if __name__ == "__main__":
    for name in sys.argv[1:]:
        library, write = FORMATS[name]
        shutil.rmtree(HERE / name, ignore_errors=True)
        (HERE / name).mkdir()
        write(HERE / name)
        path = HERE / "versions.json"
        known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        known[name] = f"{library} {importlib.metadata.version(library)}"
        path.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n", encoding="utf-8")
