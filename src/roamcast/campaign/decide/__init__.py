"""Decisions from results: which protocol wins a race, and where more seeds are needed."""
