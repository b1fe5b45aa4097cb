"""Measure what small files that need gigabytes, requests of a foreign page and texts from outside do, before and after.

    python -m experiments.bombs --out assets/results/bombs.json

A visitor opens each file on the page Data of a server. Beside it, a plain reader reads the file in a process with a
limit on its memory, as the server did before it had limits. The requests also go to Streamlit's own server, which
`streamlit run app.py` starts, and the texts and cells are also shown and written as they are.
"""

from __future__ import annotations

import http.client
import os
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import quote, urlsplit

import numpy as np
import psutil
import pyarrow as pa
from pyarrow import parquet

from experiments.hold_fast.sockets import Visitor, run_alone
from experiments.outside_texts import show_texts, written_cells
from experiments.real_server import serving
from experiments.recording import provenance, record_parser, write_record
from udml_core.data import catalog

LETTERS, ROWS = 800_000_000, 4
HEADER = 3 * 2**30
TEXT, REPEATED = 200_000, 60_000
ZEROS = bytes(2**24)
TILE = 16_384, 32_768
REQUESTS = 50
BEFORE = 3
"""Requests of each kind to a server that may take 20 s for one."""
TABLES, STRANGERS = "Small files that need gigabytes", "Requests of a foreign page"
SHOWN, CELLS = "Texts that a caption shows as they are", "Cells that a spreadsheet computes"
"""Tables of the record."""
READ = {
    "npz": "import numpy as np\nfile = np.load(path)\n[file[name] for name in file.files]",
    "parquet": "import pyarrow as pa\nfrom pyarrow import parquet\n"
               "parquet.read_table(path)['label'].cast(pa.large_string()).to_pylist()",
    "tif": "from PIL import Image\nImage.open(path).load()"}
"""What a plain reader does, by the ending of the file."""
PLAIN = """
import resource, sys
path, most = sys.argv[1], int(sys.argv[2])
import numpy, pyarrow.parquet
resource.setrlimit(resource.RLIMIT_AS, (most, most))
try:
    {read}
    words = open("/proc/self/status").read().split()
    print(int(words[words.index("VmHWM:") + 1]) / 1000)
except MemoryError:  # pyarrow's too
    print(most / 1e6)
"""


def write_labels(path: Path) -> None:
    """Write vectors beside a column of labels of 800 million letters each."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        with file.open("embeddings.npy", "w") as vectors:
            np.save(vectors, np.eye(ROWS))
        with file.open("label.npy", "w", force_zip64=True) as labels:
            np.lib.format.write_array_header_1_0(labels, {"descr": f"|S{LETTERS}", "fortran_order": False,
                                                          "shape": (ROWS,)})
            write_zeros(labels, LETTERS * ROWS)


def write_header(path: Path) -> None:
    """Write an array whose header has 3 GB."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file, \
            file.open("embeddings.npy", "w", force_zip64=True) as vectors:
        vectors.write(np.lib.format.magic(2, 0) + struct.pack("<I", HEADER))
        write_zeros(vectors, HEADER)


def write_zeros(file: Any, count: int) -> None:
    for _ in range(count // len(ZEROS)):
        file.write(ZEROS)
    file.write(ZEROS[:count % len(ZEROS)])


def write_text(path: Path) -> None:
    """Write vectors beside a column that stores a text once and names it in every row."""
    label = pa.DictionaryArray.from_arrays(np.zeros(REPEATED, np.int32), ["x" * TEXT])
    parquet.write_table(pa.table({"embedding": [[1.0, 2.0]] * REPEATED, "label": label}), path)


SHORT, LONG = 3, 4
FORMS = {SHORT: "H", LONG: "I"}
Field = tuple[int, int, list[int]]
"""A field of a TIFF file: its number, its type, and its values."""


def tiff(fields: list[Field], content: bytes = b"", order: str = "<") -> bytes:
    """Return a TIFF file of one image, whose content begins at the address that stands for 0 in the fields 273 and 324.

    Values that do not fit into their field stand behind the content.
    """
    begin = 8 + 2 + 12 * len(fields) + 4
    beyond = b""
    listed = b""
    for number, kind, values in sorted(fields):
        packed = struct.pack(f"{order}{len(values)}{FORMS[kind]}", *(
            begin + value if number in (273, 324) and kind == LONG else value for value in values))
        if len(packed) > 4:
            address = struct.pack(f"{order}I", begin + len(content) + len(beyond))
            beyond += packed
            packed = address
        listed += struct.pack(f"{order}HHI", number, kind, len(values)) + packed.ljust(4, b"\0")
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(f"{order}I", 8)
    return head + struct.pack(f"{order}H", len(fields)) + listed + bytes(4) + content + beyond


def write_tile(path: Path) -> None:
    """Write an image of 100 by 100 pixels whose only tile has 537 million."""
    packer = zlib.compressobj()
    content = b"".join(packer.compress(ZEROS) for _ in range(3 * TILE[0] * TILE[1] // len(ZEROS))) + packer.flush()
    path.write_bytes(tiff([
        (256, SHORT, [100]), (257, SHORT, [100]), (258, SHORT, [8, 8, 8]), (259, SHORT, [8]), (262, SHORT, [2]),
        (277, SHORT, [3]), (322, LONG, [TILE[0]]), (323, LONG, [TILE[1]]), (324, LONG, [0]),
        (325, LONG, [len(content)])], content))


BOMBS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "labels": ("label of 800 million letters, NPZ", write_labels),
    "header": ("header of 3 GB, NPZ", write_header),
    "text": ("text of 200 kB in 60,000 rows, Parquet", write_text),
    "tile": ("tile of 537 million pixels, TIFF of 100 by 100", write_tile)}
"""Title and writer of each file."""
FILES = {"text": "text.parquet", "tile": "images/tile.tif"}
"""Paths of the files that are no NPZ."""


def remember(path: Path) -> str:
    """Make the server list a table, or the folder of an image; return its name."""
    if path.suffix == ".tif":
        catalog.remember(str(path.parent))
        return str(path.parent)
    table = catalog.table_of(str(path))
    assert table is not None
    catalog.remember_table(table)
    return table.name


def memory(process: psutil.Process) -> float:
    """Return the megabytes of a process; 0 if it has ended."""
    try:
        return float(process.memory_info().rss / 1e6)
    except psutil.NoSuchProcess:
        return 0.0


@contextmanager
def watched(server: psutil.Process) -> Iterator[dict[str, float]]:
    """Yield the largest memory of a server, and of each of the processes that read for it, while the body runs."""
    most, ended = {"server": memory(server), "readers": 0.0}, threading.Event()

    def watch() -> None:
        while not ended.wait(0.02):
            most["server"] = max(most["server"], memory(server))
            most["readers"] = max([most["readers"], *map(memory, server.children(recursive=True))])

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield most
    finally:
        ended.set()
        watching.join()


async def visit(url: str, name: str) -> tuple[float, str]:
    """Open a data set on the page Data; return the seconds and the texts of the page."""
    visitor = Visitor(url)
    seconds = await visitor.open("data", f"dataset={quote(name)}")
    await visitor.close()
    return seconds, "\n".join(visitor.pictures.texts)


def read_plainly(path: Path, limit: float) -> float:
    """Return the megabytes that a plain reader takes: the limit, in gigabytes, if it needs more."""
    script = PLAIN.format(read=READ[path.suffix[1:]].replace("\n", "\n    "))
    done = subprocess.run([sys.executable, "-c", script, str(path), str(int(limit * 1e9))], capture_output=True,
                          text=True, check=True, timeout=600)
    return float(done.stdout)


def measure(url: str, server: psutil.Process, path: Path, name: str, limit: float) -> dict[str, float]:
    """Measure a file with a server, and with a plain reader."""
    before = memory(server)
    with watched(server) as most:
        seconds, texts = run_alone(visit(url, name))
    assert path.name in texts, texts
    assert "format: ERROR" in texts, texts
    return {"file MB": path.stat().st_size / 1e6, "plain reader MB": read_plainly(path, limit),
            "server MB more": most["server"] - before, "reading process MB": most["readers"], "answer s": seconds}


def ask_everything(url: str, count: int) -> dict[str, dict[str, float]]:
    """Send each kind of request as a foreign page does."""
    foreign = {"Origin": "http://evil.example"}
    return {"websocket, foreign Origin": ask(url, True, foreign, count),
            "page, foreign Origin": ask(url, False, foreign, count),
            "page, unknown Host": ask(url, False, {"Host": "evil.example"}, count)}


def ask(url: str, upgrade: bool, headers: dict[str, str], count: int) -> dict[str, float]:
    """Send requests; return the status, and the milliseconds until the answers."""
    address, taken, statuses = urlsplit(url), [], set()
    fields = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
              "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="} if upgrade else {}
    for _ in range(count):
        began = time.monotonic()
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
        connection.request("GET", "/_stcore/stream" if upgrade else "/",
                           headers={"Host": address.netloc} | fields | headers)
        statuses.add(connection.getresponse().status)
        taken.append(1000 * (time.monotonic() - began))
        connection.close()
    (status,) = statuses
    return {"status": status, "answer p50 ms": median(taken), "answer slowest ms": max(taken)}


def rounded(rows: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    return {name: {title: round(value, 3) for title, value in row.items()} for name, row in rows.items()}


def main() -> None:
    parser = record_parser(__doc__, required=False)
    parser.add_argument("--limit", type=float, default=6.0, help="gigabytes that a plain reader may take")
    parser.add_argument("--files", nargs="+", choices=BOMBS, default=list(BOMBS), help="the files")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"UDML_CACHE": f"{home}/cache", "UDML_RUNS": f"{home}/runs", "UDML_EXAMPLES": "0"}
        files = {}
        for kind in options.files:
            title, write = BOMBS[kind]
            path = Path(home) / FILES.get(kind, f"{kind}.npz")
            path.parent.mkdir(exist_ok=True)
            write(path)
            files[title] = path, remember(path)
        with serving("serve.py", dict(os.environ)) as (url, process):
            server = psutil.Process(process.pid)
            run_alone(visit(url, "digits"))
            rows = {}
            for title, (path, name) in files.items():
                rows[title] = measure(url, server, path, name, options.limit)
                print(title, rows[title], flush=True)
            strangers = ask_everything(url, REQUESTS)
        with serving("app.py", dict(os.environ)) as (url, _):
            for kind, row in ask_everything(url, BEFORE).items():
                strangers[kind] |= {f"{name} before": value for name, value in row.items()}
        print(strangers, flush=True)
    if options.out:
        write_record(options.out, provenance("bombs") | {
            "protocol": "each file on the page Data of a server that has opened the digits; a plain reader in a "
                        f"process of at most {options.limit:g} GB, which stand for more; largest memory in megabytes; "
                        f"{REQUESTS} requests of each kind, and {BEFORE} to Streamlit's own server (before); 1 stands "
                        "for a text that Chromium shows as it is, and for a cell that a spreadsheet computes",
            "limit": options.limit,
            "datasets": {TABLES: {"rows": rounded(rows)}, STRANGERS: {"rows": rounded(strangers)},
                         SHOWN: {"rows": show_texts()[0]}, CELLS: {"rows": written_cells()}}})


if __name__ == "__main__":
    main()
