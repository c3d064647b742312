"""Sphinx's settings for the site that `make docs` builds."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from docstrings import as_rst  # beside this file

project = "roamcast"
author = "the roamcast authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
html_theme = "furo"
html_title = "roamcast"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
templates_path: list[str] = []
myst_heading_anchors = 4  # links to headings as GitHub spells them, which tests/test_docs.py checks too
myst_links_external_new_tab = True
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
autodoc_inherit_docstrings = False  # those of other packages are written for their own sites
default_role = "code"
nitpicky = False  # types of other packages have no pages here
suppress_warnings = ["myst.header"]  # the changelog repeats headings


def setup(app: object) -> None:
    app.connect("autodoc-process-docstring", as_rst)  # type: ignore[attr-defined]  # Sphinx is not needed to check types
