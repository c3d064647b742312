"""Benchmarks and fuzzers: what is run by hand or at night, not with every test."""
