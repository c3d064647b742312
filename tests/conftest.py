"""Settings for all tests."""

import os

from hypothesis import settings

from examples import examples

# Time is measured in bench/, never in a test: the machines are shared. In CI the examples are the same every time, so
# that a change is judged by what it changes.
settings.register_profile("here", deadline=None, max_examples=examples(100))
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=examples(100))
settings.load_profile("ci" if os.environ.get("CI") else "here")
