"""Documents that people carry: content-based dissemination in networks that are never connected (Haillot, Guidec)."""
