"""Segments in files: their columns one after another, mapped into memory where they are read."""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np

from infinimem.retrieval import cache
from infinimem.retrieval.columns import PART, ROW, Array, Field, Names, Segment

_STRUCTURED = {"rows": ROW, "parts": PART}
_ALIGNED = 64


def write_segment(folder: Path, segment: Segment) -> dict[str, Any]:
    """Write a segment to a new file. The caller holds the lock of the folder.

    Returns:
        What a manifest says of it: file, shelf, columns (name, type, length, offset), dead parts (none).

    Raises:
        OSError: the disk refused.
    """
    name = cache.new_name("segment")
    columns: list[tuple[str, str, int, int]] = []
    with cache.new_file(folder, name) as file:
        at = 0
        for column, values in _columns(segment).items():
            file.write(bytes(-at % _ALIGNED))
            at += -at % _ALIGNED
            columns.append((column, values.dtype.str, len(values), at))
            file.write(np.ascontiguousarray(values).data.cast("B") if len(values) else b"")
            at += values.nbytes
    return {"file": name, "shelf": segment.shelf, "columns": columns, "dead": []}


def read_segment(folder: Path, row: dict[str, Any]) -> Segment:
    """The segment that a row of a manifest names.

    Raises:
        OSError: there is no such file.
        ValueError: it is shorter than the manifest says.
    """
    with (folder / row["file"]).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
    found: dict[str, Array] = {}
    for name, kind, length, offset in row["columns"]:
        dtype = _STRUCTURED.get(name) or np.dtype(kind)
        empty = np.zeros(0, dtype=dtype)
        found[name] = np.frombuffer(data, dtype, length, offset) if length else empty
    own, around = (Field(*(found.pop(f"{side}.{part}") for part in _FIELD)) for side in ("own", "around"))
    names = Names(found.pop("names"), found.pop("name_ends"))
    segment = Segment(shelf=row["shelf"], own=own, around=around, names=names, **found)
    if not _is_sound(segment):
        raise ValueError(f"{row['file']} is garbled")
    return segment


def _is_sound(segment: Segment) -> bool:
    """Whether its columns fit each other: what a cache holds may have been harmed."""
    parts, rows = segment.parts, len(segment.rows)
    ends = [
        *((field.ends, len(field.rows), len(segment.vocabulary)) for field in (segment.own, segment.around)),
        (segment.names.ends, len(segment.names.data), len(segment.names.ends) - 1),
        (segment.cite_ends, len(segment.cites), rows),
    ]
    fields = (segment.own, segment.around)
    return (
        len(segment.ids) == len(parts)
        and bool(np.all(parts["first"] == np.cumsum(parts["count"]) - parts["count"]))
        and int(parts["count"].sum()) == rows
        and all(len(field.lengths) == rows and len(field.rows) == len(field.counts) for field in fields)
        and all(
            len(end) == count + 1 and end[0] == 0 and end[-1] == last and bool(np.all(np.diff(end) >= 0))
            for end, last, count in ends
        )
    )


_FIELD = ("ends", "rows", "counts", "lengths")


def _columns(segment: Segment) -> dict[str, Array]:
    sides = {"own": segment.own, "around": segment.around}
    return {
        "vocabulary": segment.vocabulary,
        "rows": segment.rows,
        **{f"{name}.{part}": getattr(side, part) for name, side in sides.items() for part in _FIELD},
        "parts": segment.parts,
        "documents": segment.documents,
        "names": segment.names.data,
        "name_ends": segment.names.ends,
        "cite_ends": segment.cite_ends,
        "cites": segment.cites,
    }
