"""Recorded traces: other people's movement and contacts, of any size, as something that a scenario can name.

`importing` is the whole way from a file to a trace; each format has a file of its own, which only tells lines apart.
`roamcast.sim.mobility.trace` says what a trace is and reads it; `describe` and `contacts` say what is in it.
"""
