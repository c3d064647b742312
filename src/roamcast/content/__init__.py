"""What is said: events, filters over them, and what can be known about filters without seeing an event.

Nothing here knows of time, networks or files; see `docs/content.md` for the rules in prose.
"""
