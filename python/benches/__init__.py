"""Benchmarks against other libraries: speed (`peers`) and quality (`quality`), with one process per measurement."""
