"""Settings for all tests."""

import os

from hypothesis import settings

# Time is measured in bench/, never in a test: the machines are shared. In CI the examples are the same every time, so
# that a change is judged by what it changes.
settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")
