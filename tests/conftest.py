"""Settings for all tests."""

import os

import pytest
from hypothesis import settings

from examples import examples

# Time is measured in bench/, never in a test: the machines are shared. In CI the examples are the same every time, so
# that a change is judged by what it changes.
settings.register_profile("here", deadline=None, max_examples=examples(100))
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=examples(100))
settings.load_profile("ci" if os.environ.get("CI") else "here")


SHARED = ("spark", "browser")
"""Fixtures that cost seconds, and serve all tests of a worker."""


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Has tests that share such a fixture run in one worker."""
    for item in items:
        for name in SHARED:
            if name in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.xdist_group(name))
