"""Results that are kept while what they depend on stays, because every look at a page asks for them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import RLock
from typing import Any, TypeVar, cast

Result = TypeVar("Result")


class Memory:
    """The results that were asked for last.

    Args:
        most: The number of results that are kept.
    """

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, RLock()
        self._results: OrderedDict[Hashable, Any] = OrderedDict()

    def get(self, key: Hashable, compute: Callable[[], Result]) -> Result:
        """Return a result, computed once for each key; a caller must not change it.

        Args:
            key: What the result is, and what it depends on.
            compute: Computes it; two threads may both do.
        """
        with self._lock:
            if key in self._results:
                self._results.move_to_end(key)
                return cast("Result", self._results[key])
        result = compute()
        with self._lock:
            self._results[key] = result
            while len(self._results) > self._most:
                self._results.popitem(last=False)
        return result

    def has(self, key: Hashable) -> bool:
        """Return whether a result is kept."""
        with self._lock:
            return key in self._results
