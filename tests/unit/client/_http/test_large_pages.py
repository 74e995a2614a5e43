"""Memory in large pages."""

from __future__ import annotations

import io
import mmap
import re
from collections.abc import Callable
from ctypes import addressof, c_char
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_anaplat.client._http.adapter import _Timed
from airflow_provider_anaplat.client._http.large_pages import LARGE, in_large_pages

pytestmark = pytest.mark.skipif(
    not Path("/sys/kernel/mm/transparent_hugepage/enabled").exists(), reason="the system has no large pages"
)


def is_advised(memory: Any, place: int) -> bool:
    """Tell whether the system was asked for large pages at a place in memory."""
    address = addressof(c_char.from_buffer(memory, place))
    regions = re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", Path("/proc/self/smaps").read_text(), flags=re.MULTILINE)
    for region in filter(None, regions):
        begin, end = (int(number, 16) for number in region.split(maxsplit=1)[0].split("-"))
        if begin <= address < end:
            return "hg" in region.rpartition("VmFlags:")[2].split()
    raise AssertionError("the memory is nowhere")


def receive(buffer: Any) -> None:
    """Receive what fills a buffer."""
    with io.FileIO("/dev/zero") as zeros:
        assert _Timed(zeros, 10).readinto(buffer) == len(buffer)


@pytest.mark.parametrize("take", [in_large_pages, receive])
def test_memory_is_asked_for_in_large_pages(take: Callable[[Any], None]) -> None:
    memory = mmap.mmap(-1, LARGE + 2 * mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with memoryview(memory) as whole, whole[50:] as part:
        take(part)
    assert not is_advised(memory, 0)  # the first page is another's as well
    assert is_advised(memory, mmap.PAGESIZE)
    assert is_advised(memory, len(memory) - 1)


def test_memory_of_a_small_answer_is_left_alone() -> None:
    memory = mmap.mmap(-1, LARGE - 1, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    receive(memory)
    assert not is_advised(memory, 0)
