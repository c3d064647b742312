"""Benchmarks and fuzzers, run by hand or at night, not with every test."""
