"""Reading pickled arrays without running what a file names."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from udml_core.files import check_regular


def read_pickled_arrays(path: Path) -> Any:
    """Read NumPy arrays, numbers, text, bytes, lists and dictionaries from a pickle.

    Raises:
        pickle.UnpicklingError: The file needs anything else, or is damaged.
        OSError: There is no such regular file.
    """
    check_regular(path)
    with path.open("rb") as file:
        try:
            return ArraysOnly(file, encoding="latin1").load()
        except pickle.UnpicklingError:
            raise
        except Exception as error:  # a damaged file can raise any exception
            raise pickle.UnpicklingError(f"it is damaged: {type(error).__name__}: {error}") from error


class ArraysOnly(pickle.Unpickler):
    """An unpickler of NumPy arrays that cannot run other code.

    Python 2 wrote most published files, with NumPy's former module names.
    """

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("_codecs", "encode"):
            return _encode
        former = module.replace("numpy.core", "numpy._core")
        if (former, name) not in (("numpy._core.multiarray", "_reconstruct"), ("numpy", "ndarray"), ("numpy", "dtype")):
            raise pickle.UnpicklingError(f"it must contain only arrays, numbers and text, but names {module}.{name}")
        return super().find_class(former, name)


def _encode(text: str, encoding: str) -> bytes:
    """Return the bytes that Python 3 stores as text in old pickle formats."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"it must store bytes as latin1, got {encoding!r}")
    return text.encode("latin1")
