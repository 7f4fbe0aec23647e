"""Softwood beside its peers: speed (`peers`) and quality (`quality`), each contestant in a process of its own."""
