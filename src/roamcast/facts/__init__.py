"""What happened in a run: tables of facts, and how they are written and read."""
