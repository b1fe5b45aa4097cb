"""Archives of very many tiny files: read within memory, or refused with one message that leaves nothing."""

from __future__ import annotations

import io
import os
import time
import zipfile
from pathlib import Path
from unittest.mock import patch

import numpy as np
from PIL import Image

from experiments.hold_fast.attempt import Hostility, note_figure
from experiments.memory import peak_megabytes
from udml_core.base.errors import UserError
from udml_core.base.paths import imports_folder
from udml_core.data import catalog

FILES = 200_000
MOST_MEGABYTES = 2_000.0
"""By how much the largest memory of this process may rise; 200,000 files took 262 MB."""


def try_tiny(random: np.random.Generator, scratch: Path, files: int = FILES) -> str | None:
    """Import an archive of tiny files, of which a random part are images and the others junk."""
    share, image = float(random.choice([0.0, 0.001, 0.5])), io.BytesIO()
    Image.new("L", (1, 1)).save(image, "PNG")
    path = scratch / "tiny.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number, is_image in enumerate(random.random(files) < share):
            archive.writestr(f"c{number % 10}/{number:06}.png", image.getvalue() if is_image else b"x")
    began, shares, before = time.monotonic(), [0.0], peak_megabytes()
    with patch.dict(os.environ, {"UDML_CACHE": str(scratch / "cache")}):
        try:
            with path.open("rb") as file:
                folder = catalog.import_archive("tiny", file, path.name, lambda done, _step: shares.append(done))
            if len(list(folder.rglob("*.png"))) != files:
                return f"{files} files became {len(list(folder.rglob('*.png')))}"
        except UserError as error:
            if path.name not in str(error) and "tiny" not in str(error):
                return f"the message does not name the archive: {error}"
            if imports_folder().exists() and any(imports_folder().iterdir()):
                return "a refused archive leaves files"
    megabytes = peak_megabytes()
    note_figure("tiny files s", time.monotonic() - began)
    note_figure("tiny files MB", megabytes)
    if len(shares) < 10 and files >= FILES:
        return f"{len(shares)} steps of progress for {files} files"
    return None if megabytes - before < MOST_MEGABYTES else f"the process grew from {before:.0f} to {megabytes:.0f} MB"


PART = Hostility("tiny files", try_tiny, limit=1800, seconds=300, goal=3, on_request=True)
