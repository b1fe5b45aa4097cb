"""Reading pickled arrays without running what a file names."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np

from udml_core.base.arrays import Array
from udml_core.base.files import check_regular

KINDS = "biufSU"
"""Kinds of the elements of arrays: booleans, numbers, bytes and text. Objects would be addresses in memory."""


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


class _ArrayType:
    """What stands for the class of arrays, which a file could call with addresses in memory."""


class ArraysOnly(pickle._Unpickler):
    """An unpickler of NumPy arrays that cannot run other code.

    It is Python's own implementation: the one in C reserves as much memory as a file of nine bytes says. Python 2 wrote
    most published files, with NumPy's former module names.
    """

    def find_class(self, module: str, name: str) -> Any:
        known = {("numpy._core.multiarray", "_reconstruct"): _new_array, ("numpy", "ndarray"): _ArrayType,
                 ("numpy", "dtype"): _checked_type, ("_codecs", "encode"): _encode}
        former = module.replace("numpy.core", "numpy._core")
        if (former, name) not in known:
            raise pickle.UnpicklingError(f"it must contain only arrays, numbers and text, but names {module}.{name}")
        return known[former, name]


class _StoredArray(np.ndarray[Any, Any]):
    """An array whose stored state is checked before it is set."""

    def __setstate__(self, state: Any) -> None:
        version, shape, kind, is_fortran, content = state
        if not isinstance(kind, _StoredType) or not isinstance(content, bytes | str):
            raise pickle.UnpicklingError("its arrays must hold numbers or text")
        raw = content if isinstance(content, bytes) else content.encode("latin1")
        super().__setstate__((version, shape, kind.type, is_fortran, raw))


class _StoredType:
    """The type of an array's elements, whose stored state only chooses the order of the bytes."""

    def __init__(self, kind: np.dtype[Any]) -> None:
        self.type = kind

    def __setstate__(self, state: Any) -> None:
        if state[1] in ("<", ">"):
            self.type = self.type.newbyteorder(state[1])


def _new_array(_kind: Any, _shape: Any, _code: Any) -> Array:
    return np.ndarray.__new__(_StoredArray, (0,), "b")


def _checked_type(code: Any, *_: Any) -> _StoredType:
    kind = np.dtype(code.decode("latin1") if isinstance(code, bytes) else str(code))
    if kind.kind not in KINDS or not kind.itemsize:
        raise pickle.UnpicklingError(f"its arrays must hold numbers or text, got {kind}")
    return _StoredType(kind)


def _encode(text: str, encoding: str) -> bytes:
    """Return the bytes that Python 3 stores as text in old pickle formats."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"it must store bytes as latin1, got {encoding!r}")
    return text.encode("latin1")
