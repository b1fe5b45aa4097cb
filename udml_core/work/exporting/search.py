"""Print the images nearest to a query, marked up to where "the same" ends: python search.py query.jpg [number]."""
import csv
import json
import re
import sys
from pathlib import Path

import faiss
import numpy as np
import onnxruntime
from PIL import Image, ImageOps

folder = Path(__file__).parent
config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
size, farthest_same = config["preprocessing"]["size"], config.get("same", {"distance": -1})["distance"]
with (folder / "gallery.csv").open(encoding="utf-8", newline="") as file:
    # Names that a spreadsheet would run as formulas are stored with an apostrophe.
    names = [re.sub(r"^'(?='*[=+\-@\t\r])", "", row["file_name"]) for row in csv.DictReader(file)]
try:
    photo = Image.open(sys.argv[1])
    photo.draft(None, (2 * size, 2 * size))  # a large JPEG is decoded smaller, as the gallery's images were
    image = ImageOps.exif_transpose(photo).convert("RGBA")  # upright; white where transparent
except (OSError, IndexError) as error:
    sys.exit(f"The query could not be read: {error}. Name an image that exists, as JPEG or PNG.")
image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
square = np.asarray(ImageOps.fit(image, (size, size), Image.Resampling.BICUBIC)).transpose(2, 0, 1)
model = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
embedding = model.run(["embeddings"], {"images": np.ascontiguousarray(square[None])})[0]
number = min(int(sys.argv[2]) if len(sys.argv) > 2 else 10, len(names))
squared, nearest = faiss.read_index(str(folder / "gallery.faiss")).search(embedding, number)
for distance, index in zip(np.maximum(squared[0], 0) ** 0.5, nearest[0], strict=True):
    print(f"{distance:.4f}\t{names[index]}" + ("\tsame" if distance <= farthest_same else ""))
