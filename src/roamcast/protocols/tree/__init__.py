"""Trees of brokers: who is my parent (`maodv.py`, `coman.py`), and content on any tree (`forwarding.py`)."""
