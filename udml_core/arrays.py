"""Array types."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = np.ndarray[Any, Any]
"""An array whose dtype varies or that the docstring names."""
Floats = npt.NDArray[np.floating]
Integers = npt.NDArray[np.integer]
Booleans = npt.NDArray[np.bool_]
