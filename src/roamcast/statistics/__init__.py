"""Statistics over seeds: intervals, repeated looks, bootstrap, correction for many tests, curves, evidence."""
