"""Events, filters over them, and what can be known about filters without seeing an event.

Nothing here knows about time, networks or files. `docs/content.md` explains the rules.
"""
