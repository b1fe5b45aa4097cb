"""Lists of sorted images: a table for people, Parquet, and what FiftyOne and Label Studio import."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

import pyarrow as pa
from pyarrow import parquet

from udml_core.base.files import replace_bytes
from udml_core.base.spreadsheets import write_rows
from udml_core.data.dataset import Dataset, FileImages
from udml_core.work.exporting.sorting_own import keep_changed, note_lists
from udml_core.work.exporting.sorting_plan import FIFTYONE, Item, Plan

ANNOTATOR = "udml-explorer"


def write_lists(plan: Plan) -> list[Path]:
    """Write the lists of an export, and return their paths; what a user changed there is kept beside them."""
    paths = image_paths(plan)
    contents = {"metadata.csv": metadata_table(plan, paths).encode(), "images.parquet": parquet_table(plan, paths)}
    keep_changed(plan.dataset, plan.target, plan.for_programs)
    if plan.for_programs:
        (plan.target / FIFTYONE).mkdir(exist_ok=True)
        contents |= program_lists(plan, paths)
    for name, content in contents.items():
        replace_bytes(plan.target / name, content)
    note_lists(plan.dataset, plan.target, contents)
    return [plan.target / name for name in contents]


def program_lists(plan: Plan, paths: Sequence[str]) -> dict[str, bytes]:
    """Return the files that FiftyOne and Label Studio import, by their paths below the target."""
    images = [(item, path) for item, path in zip(plan.items, paths, strict=True) if path]
    named = [(item, path) for item, path in images if item.label]
    return {"fiftyone/data.json": _json(fiftyone_data(named)), "fiftyone/labels.json": _json(fiftyone_labels(named)),
            "label-studio.json": _json([task_of(item, path) for item, path in images]),
            "label-studio.xml": label_studio_config(plan).encode()}


def image_paths(plan: Plan) -> list[str]:
    """Return the path of each image: what was written, or the user's own file in a list; empty without a file."""
    if plan.how != "list":
        return [str(plan.target / item.file) for item in plan.items]
    images: Dataset = plan.dataset
    if not isinstance(images.images, FileImages):
        return ["" for _ in plan.items]
    indices = images.indices_by_name({item.image for item in plan.items})
    return [str(images.images.source(indices[item.image])) for item in plan.items]


def metadata_table(plan: Plan, paths: Sequence[str]) -> str:
    """Return the table that Hugging Face's `imagefolder` reads: `file_name` is a path below the target."""
    text = io.StringIO(newline="")
    is_list = plan.how == "list"
    write_rows(text, [["file_name", "label", "certainty", "assigned", "image"], *(
        [path if is_list else item.file, item.label, round(item.certainty, 4), int(item.is_assigned), item.image]
        for item, path in zip(plan.items, paths, strict=True))])
    return text.getvalue()


def parquet_table(plan: Plan, paths: Sequence[str]) -> bytes:
    """Return the same as Parquet, with exact names, and null without a class."""
    content = io.BytesIO()
    items = plan.items
    columns = {"image": [item.image for item in items], "file_name": [item.file for item in items],
               "path": [path or None for path in paths], "label": [item.label or None for item in items]}
    table = {name: pa.array(values, pa.string()) for name, values in columns.items()}
    table["certainty"] = pa.array([item.certainty for item in items], pa.float32())
    table["assigned"] = pa.array([item.is_assigned for item in items])
    parquet.write_table(pa.table(table, metadata={"how": plan.how}), content)
    return content.getvalue()


def fiftyone_data(named: Sequence[tuple[Item, str]]) -> dict[str, str]:
    """Return the manifest of a `FiftyOneImageClassificationDataset`: the path of each image by a number.

    FiftyOne drops the suffix of a key, so a number stays unique where a file name does not.
    """
    return {f"{number:07}": path for number, (_, path) in enumerate(named)}


def fiftyone_labels(named: Sequence[tuple[Item, str]]) -> dict[str, object]:
    """Return its labels: the class and the confidence of each image by the same numbers."""
    return {"classes": None, "labels": {f"{number:07}": {"label": item.label, "confidence": round(item.certainty, 4)}
                                        for number, (item, _) in enumerate(named)}}


def task_of(item: Item, path: str) -> dict[str, object]:
    """Return a task of Label Studio: a label with a look at the image is an annotation, else a prediction."""
    task: dict[str, object] = {"data": {"image": f"/data/local-files/?d={quote(path.lstrip('/'))}",
                                        "name": item.image}}
    if not item.label:
        return task
    result = [{"id": "class", "from_name": "class", "to_name": "image", "type": "choices",
               "value": {"choices": [item.label]}}]
    if item.is_assigned:
        return task | {"annotations": [{"result": result}]}
    return task | {"predictions": [{"model_version": ANNOTATOR, "score": round(item.certainty, 4), "result": result}]}


def label_studio_config(plan: Plan) -> str:
    """Return the labeling interface of Label Studio with all classes of the export."""
    choices = "\n".join(f"    <Choice value={quoteattr(name)}/>" for name in sorted(plan.classes) if name)
    return ('<View>\n  <Image name="image" value="$image"/>\n'
            f'  <Choices name="class" toName="image" choice="single">\n{choices}\n  </Choices>\n</View>\n')


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=1).encode()
