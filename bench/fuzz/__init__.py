"""One module for each reader of foreign input: `inputs(rng)` makes them, `read(input)` must survive them."""
