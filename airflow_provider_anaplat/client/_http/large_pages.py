"""Memory in large pages, where the system has them.

To be given the memory of a large answer in pages of 4 kB takes longer than to fill it.
"""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

__all__ = [
    "LARGE",
    "in_large_pages",
]

LARGE = 4 << 20  # bytes; less may hold no whole page of 2 MB
_HUGE_PAGES = getattr(mmap, "MADV_HUGEPAGE", None)  # which Linux alone has


def in_large_pages(buffer: Any) -> None:
    """Ask the system for large pages for memory that nothing was written to yet; it need not give any.

    :param buffer: what can be written to, as bytes
    """
    if _HUGE_PAGES is None:
        return
    begin = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
    first = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE
    ctypes.CDLL(None).madvise(
        ctypes.c_void_p(first), ctypes.c_size_t(begin + len(buffer) - first), ctypes.c_int(_HUGE_PAGES)
    )
