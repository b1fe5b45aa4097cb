"""Make assets/emoji.webp and assets/emoji.json from Google's Noto emoji drawings.

    npm pack emoji-datasource-google@16.0.0
    tar xzf emoji-datasource-google-16.0.0.tgz package/emoji.json package/img/google/64
    python -m experiments.make_emoji package

The classes are the Unicode subcategories with at least 16 drawings; of a larger one the first 60 are taken, in Unicode
order. Drawings are placed on white, because the app's images have no transparency. They are by Google LLC (Noto Emoji,
Apache License 2.0); names and subcategories are from Cal Henderson's emoji-data (MIT), see assets/emoji.LICENSE.
"""

import json
import sys
from pathlib import Path

from PIL import Image

from udml_core.base.paths import ASSETS
from udml_core.data.sources.emoji import COLUMNS, SIDE

LEAST, MOST = 16, 60

package = Path(sys.argv[1])
drawings = sorted((drawing for drawing in json.loads((package / "emoji.json").read_text(encoding="utf-8"))
                   if drawing["has_img_google"]), key=lambda drawing: drawing["sort_order"])
by_class: dict[str, list[dict[str, str]]] = {}
for drawing in drawings:
    by_class.setdefault(drawing["subcategory"], []).append(drawing)
chosen = [drawing for group in by_class.values() if len(group) >= LEAST for drawing in group[:MOST]]

sheet = Image.new("RGB", (COLUMNS * SIDE, -(-len(chosen) // COLUMNS) * SIDE), "white")
for index, drawing in enumerate(chosen):
    with Image.open(package / "img" / "google" / "64" / drawing["image"]) as file:
        image = file.convert("RGBA")
    row, column = divmod(index, COLUMNS)
    sheet.paste(image, (column * SIDE, row * SIDE), image)
sheet.save(ASSETS / "emoji.webp", lossless=True, method=6)
rows = [[drawing["short_name"], drawing["subcategory"]] for drawing in chosen]
(ASSETS / "emoji.json").write_text(json.dumps(rows, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
