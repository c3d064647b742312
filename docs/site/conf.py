"""Sphinx's settings for the site that `make docs` builds."""

import builtins
import sys
from pathlib import Path

from docutils import nodes
from sphinx.addnodes import pending_xref

sys.path.insert(0, str(Path(__file__).parent))
from docstrings import as_rst  # beside this file

project = "roamcast"
author = "the roamcast authors"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
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
# The changelog repeats headings; a class in a signature is looked up by its short name, which others may have too.
suppress_warnings = ["myst.header", "ref.python"]


def plain_builtins(_app: object, page: nodes.document) -> None:
    """Leaves Python's own types without links: `bytes` in a signature would lead to any attribute of that name."""
    for link in list(page.findall(pending_xref)):
        if link.get("refdomain") == "py" and hasattr(builtins, link["reftarget"]):
            link.replace_self(link.children)


def setup(app: object) -> None:
    app.connect("autodoc-process-docstring", as_rst)  # type: ignore[attr-defined]  # Sphinx is not needed to check types
    app.connect("doctree-read", plain_builtins)  # type: ignore[attr-defined]  # as above
