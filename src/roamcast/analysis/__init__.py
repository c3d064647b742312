"""What the facts of one run mean, without Spark: pairs, contacts, what was possible, causes, measures."""
