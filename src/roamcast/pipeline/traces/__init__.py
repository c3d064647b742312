"""Recorded traces: movement and contacts from other sources, of any size, in a form that a scenario can name.

`importing` is the whole way from a file to a trace; each format has a file of its own, which only parses lines.
`roamcast.sim.mobility.trace` says what a trace is and reads it; `describe` and `contacts` say what is in it.
"""
