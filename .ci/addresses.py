"""Where a release has its home: its addresses and the README's links, from one setting.

``ANAPLAT_HOME`` is the address below which the files of the release stand, as in
``https://code.example.com/anaplat/blob/v1.0.0``. Where it is not set, what is built names no address.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_PAGES = {"Documentation": "docs/index.md", "Changelog": "CHANGELOG.md", "Source": ""}
_RELATIVE_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)]+)\)")


class Addresses(MetadataHookInterface):
    """Fills in what ``pyproject.toml`` leaves open."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Give the metadata the README and, where there is a home, addresses."""
        home = os.environ.get("ANAPLAT_HOME", "").rstrip("/")
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        if home:
            metadata["urls"] = {name: f"{home}/{page}".rstrip("/") for name, page in _PAGES.items()}
            text = _RELATIVE_LINK.sub(rf"]({home}/\1)", text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
