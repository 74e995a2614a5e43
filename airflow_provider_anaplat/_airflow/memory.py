"""The C library's memory, kept whole under pages that several threads take and give back."""

from __future__ import annotations

import ctypes

# Of glibc's malloc.h; other C libraries have no mallopt, and none of the trouble.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
# Bytes: less than the texts of a slice of rows take, which are kept as long as the page is.
_LARGE = 700 << 10
_SPARE = 8 << 20  # bytes that stay at hand: giving back more often than that costs time


def keep_large_blocks_apart() -> None:
    """Have each large block taken from the system by itself, and given back to it.

    Otherwise they come from the heaps of the threads, as soon as the first was freed; small blocks that stay
    between them leave holes that the next page does not fit into, and an export of many pages takes more memory
    than one of few. The setting is the whole process's, which a task has to itself.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGE)
        mallopt(_M_TRIM_THRESHOLD, _SPARE)
