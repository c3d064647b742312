"""Columns for a page: typed arrays in one compressed block, with a table of contents.

The rule this file owns, the format that `assets/columns.js` reads: gzip of 8 bytes with the length of the contents, the
contents as JSON, and the columns, each beginning at a multiple of 8 bytes; all of it as base64. The contents have
`columns`, from a name to [type, offset, length], and `about`, whatever else the page needs.
"""

import base64
import gzip
import json
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_TYPES: Final = {
    "f8": "Float64Array",
    "f4": "Float32Array",
    "i4": "Int32Array",
    "u2": "Uint16Array",
    "u1": "Uint8Array",
}
_COMPRESSION: Final = 6


class ColumnPack:
    """Collects columns."""

    def __init__(self) -> None:
        self._columns: dict[str, tuple[str, int, int]] = {}
        self._parts: list[bytes] = []
        self._offset = 0

    def add(self, name: str, values: NDArray[Any], kind: str) -> None:
        """`kind` is one of `f8`, `f4`, `i4`, `u2` and `u1`."""
        data = np.ascontiguousarray(values, f"<{kind}").tobytes()
        self._columns[name] = _TYPES[kind], self._offset, len(values)
        padding = -len(data) % 8
        self._parts += [data, bytes(padding)]
        self._offset += len(data) + padding

    def encode(self, about: dict[str, Any]) -> str:
        contents = json.dumps({"columns": self._columns, "about": about}, ensure_ascii=False).encode()
        contents += b" " * (-len(contents) % 8)
        whole = b"".join([len(contents).to_bytes(8, "little"), contents, *self._parts])
        return base64.b64encode(gzip.compress(whole, _COMPRESSION, mtime=0)).decode()
