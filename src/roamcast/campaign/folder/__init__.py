"""A campaign's folder: what is where, how it is written, and how it is read."""
