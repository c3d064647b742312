"""One file for each family of measures; `catalogue` has all of them."""
