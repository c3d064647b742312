"""What happened in a run: tables of facts, how they are written and read, and the summary of one run."""
