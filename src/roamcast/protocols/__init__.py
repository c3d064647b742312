"""Protocols: brokers, their contract, their messages. No clock, no I/O: the same code runs in every world."""
