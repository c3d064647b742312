"""Loss of power, for real: a disk that forgets what was not written through, and what survives on it."""
