"""The model card: data, protocol, figures, intended use and limits in plain English."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from udml_core.base.errors import UserError
from udml_core.data.splits import SplitName
from udml_core.exploration.race_figures import SAID
from udml_core.methods import find_method
from udml_core.numerics.evaluation import headline_measures
from udml_core.numerics.measures import measure_of
from udml_core.numerics.same_pairs import NEIGHBORS
from udml_core.results.embedding_words import words_of
from udml_core.runs import Run, list_runs
from udml_core.runs.opinions import QUESTION_WORDS, newest_opinion
from udml_core.runs.run_comparison import grouped_by_seed, spread
from udml_core.runs.search import FROZEN, Retrieval
from udml_core.runs.verdict import has_labels, verdict
from udml_core.work.exporting import target
from udml_core.work.jobs.verdicts import said_lines

PROTOCOLS: dict[SplitName, str] = {
    "zero-shot": "The classes are divided by name: the first half is for training, the second half for testing. No "
                 "test class was seen in training.",
    "seen": "The images are divided: training and test half have the same classes.",
    "all": "The images were not divided. Training used the same images as testing, so the figures do not show how "
           "well the model works on new images."}
GIVEN = "The data set gives the training and the test half."
OFFICIAL = ("The authors' training classes are for training, their test classes for testing. No test class was seen in "
            "training.")
SUPERVISION = {"none": "No labels were used in training.",
               "few": "A few labeled images of each training class were used, and the other training images without "
                      "labels.",
               "pairs": "Training used pairs of images that are marked as similar or dissimilar.",
               "all": "The labels of all training images were used."}
COLUMNS = {"frozen": words_of("frozen").sentence, "centered pca": words_of("centered pca").title,
           "initial": words_of("initial").sentence, "final": "this model"}
UNJUDGED = ("This run has neither labels nor a second opinion: nothing says whether it is better than the plain "
            "search. `udml opinion RUN` asks judges that took no part; then export it again.")
PLAIN = "This model is the plain search, with which others are compared."
JOINED = {"together": " The unit features of these encoders stand side by side, centered and whitened as one vector by "
                      "statistics of the training images.",
          "each": " The unit features of these encoders stand side by side, each centered and whitened by statistics "
                  "of the training images.",
          "none": " The unit features of these encoders stand side by side."}
"""How several encoders make one vector."""
TASK, UNKNOWN_LICENSE = "image-feature-extraction", "unknown"
"""The task and the license, as model hubs name them."""
LEFT_OUT = {"images", "dimension", "map@r left out", "precision", "recall"}
"""Measures of the evaluation that the card leaves out."""


def write_card(opened: Retrieval, config: Mapping[str, Any], path: Path, license_name: str = "") -> None:
    """Write the model card of a run.

    Args:
        opened: The run.
        config: The description of the model, as it is written beside the card.
        path: The file.
        license_name: The license that the user gives the model, as model hubs name it; empty if unknown.
    """
    has_example = (path.parent / target.SEARCH).exists()
    parts = [_header(opened, license_name), _data(opened), _figures(opened.run), _use(config, has_example),
             _same(config), _limits(opened, config, has_example, license_name)]
    path.write_text("\n".join(part for part in parts if part), encoding="utf-8")


def _header(opened: Retrieval, license_name: str) -> str:
    spec = opened.spec
    backbone, several = _plain(spec.encoder.backbone), JOINED.get(spec.encoder.whitening) if spec.encoder.parts else ""
    return f"""---
{_front_matter(opened, license_name)}---
# {_title(opened)} on {_plain(spec.dataset_title)}

This model maps an image to a vector, its embedding. Similar images have near embeddings.

- **Method**: {_title(opened)} (`{spec.method}`). {_paper(spec.method)}
- **Backbone**: {backbone}, images of {spec.encoder.size} × {spec.encoder.size} pixels.{several}
- **Run**: `{opened.run.id}`, seed {spec.seed}, UDML Explorer {spec.version}.
- **Hyper-parameters**: in `{target.CONFIG}`.
"""


def _front_matter(opened: Retrieval, license_name: str) -> str:
    """Return what model hubs read: the license, which only the user knows, and the figures of the test half."""
    measured = headline_measures((opened.run.evaluation() or {}).get("final", {}))
    metrics = [{"type": name, "name": measure_of(name).name, "value": round(float(value), 2)}
               for name, value in measured.items() if name not in LEFT_OUT and value is not None]
    content: dict[str, Any] = {"library_name": "udml-explorer", "license": license_name or UNKNOWN_LICENSE,
                               "pipeline_tag": TASK, "tags": ["metric-learning", "image-retrieval"]}
    if metrics:
        result = {"task": {"type": TASK}, "metrics": metrics,
                  "dataset": {"type": "custom", "name": opened.spec.dataset_title, "split": "test"}}
        content["model-index"] = [{"name": f"{_title(opened)} on {opened.spec.dataset_title}", "results": [result]}]
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=10_000)


def _data(opened: Retrieval) -> str:
    dataset, split = opened.dataset, opened.split
    labels = f"in {len(dataset.class_names):,} classes" if dataset.class_names else "without classes"
    supervision = SUPERVISION.get(_supervision(opened.spec.method), "")
    official = split.name == "zero-shot" and dataset.training_classes is not None
    given = split.name == "seen" and dataset.official_test is not None
    protocol = GIVEN if given else OFFICIAL if official else PROTOCOLS[split.name]
    excluded = f"{len(split.excluded):,} images were excluded from both. " if len(split.excluded) else ""
    is_labeled = dataset.labels is not None or dataset.evaluation_classes is not None
    hit = " A hit is an image of the query's class." if is_labeled else ""
    if dataset.queries is not None and split.name == "zero-shot":
        hit += " The measures of queries to gallery use the official queries and gallery alone."
    return f"""## Data and protocol

The data set is {_plain(opened.spec.dataset_title)}: {len(dataset):,} images {labels}. \
{protocol}
Training half: {len(split.train):,} images. Test half: {len(split.test):,} images. {excluded}{supervision}

Each test image is a query, and the other test images are its gallery.{hit}
"""


def _figures(run: Run) -> str:
    """Return the figures of the test half, with their spread where other seeds of the run are known."""
    evaluation = run.evaluation()
    if not evaluation:
        return "## Figures\n\nThis run has no evaluation.\n"
    if not has_labels(evaluation):
        return _verdict_without_labels(run)
    rows = {name: headline_measures(evaluation[name]) for name in COLUMNS if name in evaluation}
    seeds = _evaluations_by_seed(run)
    heads = [COLUMNS[name] for name in rows] + ([f"mean ± deviation, {len(seeds)} seeds"] if len(seeds) > 1 else [])
    lines = ["| Measure | " + " | ".join(heads) + " |", "|---|" + "---:|" * len(heads)]
    for measure in (name for name in rows.get("final", {}) if name not in LEFT_OUT):
        cells = [_number(row.get(measure)) for row in rows.values()]
        cells += [_spread(seeds, measure)] if len(seeds) > 1 else []
        lines.append(f"| {measure_of(measure).name} | " + " | ".join(cells) + " |")
    known = (f"The last column is the mean and the standard deviation over {len(seeds)} runs that differ in the seed "
             "alone." if len(seeds) > 1 else "This is a single run: how much the figures vary with the seed is not "
                                             "known.")
    title = _title_of(run.spec().method)
    is_frozen = run.spec().method == FROZEN
    sentence = " ".join([verdict(title, evaluation, is_frozen).sentence, *said_lines(run)[:1]])
    sentence = sentence.replace("\N{NO-BREAK SPACE}", " ")  # a file that other programs read
    table = "\n".join(lines)
    return f"""## Figures

{sentence} {known}

{table}

Values are in percent, except for the effective rank, which counts dimensions. NMI, purity and pairwise F compare the
clusters of k-means with the classes.
"""


def _verdict_without_labels(run: Run) -> str:
    """Return what judges say of a run, in a sentence and a table; without labels no measure says whether it helped."""
    lines, opinions = said_lines(run), newest_opinion(run)
    if not lines:
        return f"## Figures\n\n{PLAIN if run.spec().method == FROZEN else UNJUDGED}\n"
    text = f"## Figures\n\n{lines[0]}\n"
    if opinions is None:
        return text
    rows = [f"| {question} | {SAID[of.said]} | {of.difference:+.3f} | {of.wide.low:+.3f} to {of.wide.high:+.3f} |"
            for question, of in zip(QUESTION_WORDS, opinions.measured("final"), strict=True)]
    table = "\n".join(["| Question | All judges together | Difference | 95 % interval |", "|---|---|---:|---:|", *rows])
    return f"""{text}
{table}

The difference to the plain search says how similar a query and the images found look to the judges, from −1 to 1
(cosine). First result: the nearest image. Whole group: the {opinions.group} nearest images.
"""


def _use(config: Mapping[str, Any], has_example: bool) -> str:
    text = f"""## Intended use

Find images that are similar to a query among images like the training images, sort or cluster such images, or
draw a map of them. Compare embeddings by Euclidean distance.

| File | Content |
|---|---|
| `{target.WEIGHTS}`, `{target.CONFIG}` | weights of encoder and head; their description and the preprocessing |
| `{target.INDEX}`, `{target.GALLERY}` | faiss index of {config["gallery"]["images"]:,} images; their names and \
classes in its order |
"""
    if "onnx" in config:
        text += f"""| `{target.ONNX}` | encoder and head, from images (uint8, RGB) to embeddings |
"""
        if has_example:
            text += f"""| `{target.SEARCH}` | example of a search without torch |

```
pip install onnxruntime faiss-cpu pillow
python {target.SEARCH} query.jpg
```
"""
        text += f"""
The ONNX graph was compared with torch on {config["onnx"]["compared_images"]} test images. The smallest cosine
similarity is {config["onnx"]["smallest_cosine_similarity"]:.7f}, and the largest relative distance \
{config["onnx"]["largest_relative_distance"]:.1e}.
"""
    return text + f"""
With the library:

```python
from pathlib import Path
from udml_core.data.dataset import read_image
from udml_core.data.inference import embed_pixels
from udml_core.methods import Embedder

embedder = Embedder.load(Path("{target.WEIGHTS}"))
encoder = embedder.encoder
image = read_image("query.jpg", encoder.needed_side)  # a large JPEG is decoded smaller, as the gallery's images were
embedding = embed_pixels(embedder, encoder.prepare(image)[None])[0]
```

Preprocessing: turn the image upright, put it on white where it is transparent, {config["preprocessing"]["square"]}, and
pass the RGB values from 0 to 255. The model itself normalizes them.
"""


def _same(config: Mapping[str, Any]) -> str:
    """Return where "the same" ends; nothing if too few pairs are judged."""
    if "same" not in config:
        return ""
    same = config["same"]
    return f"""## The same

{same["sentence"]} The Euclidean distance is at most {same["distance"]:.4f}.
The pairs were judged without labels or similarities in view, the last on {same["date"]}. They are a random sample of
the pairs of an image and one of its {NEIGHBORS} nearest images. The intervals hold with 95 %. `{target.CONFIG}` has
the numbers.
"""


def _limits(opened: Retrieval, config: Mapping[str, Any], has_example: bool, license_name: str) -> str:
    unit = "" if config["embedding"]["unit_length"] else (
        "\n- The embeddings do not have unit length. Use the Euclidean distance, not the cosine similarity.")
    onnx = f"""
- `{target.SEARCH}` reads images of 8 bits a channel. The app also scales gray images of 16 and 32 bits.
""".rstrip() if has_example else ""
    stated = (f"`license` at the top of this file, `{license_name}`, was given at the export. Check that it "
              "agrees with them before you publish the model.") if license_name else (
        f"`license` at the top of this file is `{UNKNOWN_LICENSE}`. Check them, and name the license there, before you "
        "publish the model.")
    return f"""## Limits

- The figures hold for one data set. On other images the neighbors can be worse: measure them on your own images.
- The nearest image always exists, even if no image of the gallery resembles the query. A small distance is no proof
  that two images show the same thing. Do not use the model to identify people or to decide about them.
- The index also contains the training half, on which the model does better than on new images.
- `{target.GALLERY}` contains the names{"" if opened.dataset.labels is None else " and classes"} of all images, and an \
embedding tells something about its image.
  Share the folder only if you may share the images.
- The licenses of the data and of the backbone's weights are not recorded here.
  {stated[0].upper() + stated[1:]}{unit}{onnx}
"""


def _evaluations_by_seed(run: Run) -> list[Mapping[str, Mapping[str, Any]]]:
    """Return the evaluations of the finished runs that equal a run but for the seed, itself included."""
    rivals = [run] + [other for other in list_runs(run.root) if other.id != run.id
                      and other.spec().method == run.spec().method
                      and other.spec().fingerprint == run.spec().fingerprint and other.status().state == "done"]
    group = next(members for members in grouped_by_seed(rivals) if run in members)
    return [evaluation for member in group if (evaluation := member.evaluation())]


def _spread(evaluations: list[Mapping[str, Mapping[str, Any]]], measure: str) -> str:
    over_seeds = spread([evaluation.get("final", {}).get(measure) for evaluation in evaluations])
    return "–" if over_seeds is None else f"{over_seeds.mean:.1f}" + ("" if over_seeds.deviation is None else
                                                            f" ± {over_seeds.deviation:.1f}")


def _title(opened: Retrieval) -> str:
    return _title_of(opened.spec.method)


def _title_of(method: str) -> str:
    """Return the title of a method; its name if this version does not know it."""
    try:
        return find_method(method).card.title
    except UserError:
        return method


def _paper(method: str) -> str:
    try:
        return find_method(method).card.paper
    except UserError:
        return ""


def _supervision(method: str) -> str:
    try:
        return find_method(method).card.supervision
    except UserError:
        return ""


def _number(value: Any) -> str:
    return "–" if value is None else f"{value:,.1f}"


def _plain(name: str) -> str:
    """Return a name on one line and without Markdown."""
    return re.sub(r"([\\`*_{}\[\]<>#|$~])", r"\\\1", " ".join(name.split()))
