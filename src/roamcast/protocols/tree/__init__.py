"""Trees of brokers: how a tree is kept (`maodv.py`, `coman.py`), and routing content on any tree (`forwarding.py`)."""
