"""Print the images nearest to a query, marked up to where "the same" ends: python search.py query.jpg [number]."""
import csv
import json
import re
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import faiss
import numpy as np
import onnxruntime
from PIL import Image, ImageOps

folder = Path(__file__).parent
config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
size, farthest_same = config["preprocessing"]["size"], config.get("same", {"distance": -1})["distance"]
with (folder / "gallery.csv").open(encoding="utf-8", newline="") as file:  # an apostrophe is before formulas
    names = [re.sub(r"^'(?='*[=+\-@\t\r])", "", row["file_name"]) for row in csv.DictReader(file)]
if find_spec("pi_heif"):
    import_module("pi_heif").register_heif_opener()
try:
    (photo := Image.open([*sys.argv, "query.jpg"][1])).draft(None, (2 * size, 2 * size))  # a large JPEG smaller
    image = ImageOps.exif_transpose(photo).convert("RGBA")  # upright; white where transparent
except OSError as error:
    sys.exit(f"The query could not be read: {error}. Name a JPEG or PNG, or a HEIC after pip install pi-heif.")
image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
square = np.asarray(ImageOps.fit(image, (size, size), Image.Resampling.BICUBIC)).transpose(2, 0, 1)
model = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
embedding = model.run(["embeddings"], {"images": np.ascontiguousarray(square[None])})[0]
number = min(int(sys.argv[2]) if len(sys.argv) > 2 else 10, len(names))
squared, nearest = faiss.read_index(str(folder / "gallery.faiss")).search(embedding, number)
for distance, index in zip(np.maximum(squared[0], 0) ** 0.5, nearest[0], strict=True):
    print(f"{distance:.4f}\t{names[index]}" + ("\tsame" if distance <= farthest_same else ""))
