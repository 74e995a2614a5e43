"""How Sphinx builds the documentation: `make docs`. Nothing is fetched while it builds."""

from __future__ import annotations

import os
import sys
from pathlib import Path

# Importing Airflow writes its configuration somewhere; not into the reader's home.
os.environ.setdefault("AIRFLOW_HOME", str(Path(__file__).parent / "_build" / "airflow"))
os.environ.setdefault("AIRFLOW__LOGGING__LOGGING_LEVEL", "WARNING")
sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "airflow-provider-anaplat"
copyright = "the authors of airflow-provider-anaplat"  # noqa: A001 - Sphinx's name
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "tables"]
exclude_patterns = ["_build"]
source_suffix = {".md": "markdown"}
html_theme = "furo"
html_title = "airflow-provider-anaplat"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
smartquotes = False

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_default_options = {
    "members": True,
    "show-inheritance": True,
    # What every operator has, and no reader calls.
    "exclude-members": "template_fields, template_fields_renderers, operator_extra_links, execute, "
    "execute_complete, poke, trigger, condition, link, serialize, run",
}
