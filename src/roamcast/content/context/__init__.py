"""Context specifications (Frey and Roman 2007, section 2.2): which hosts an event or a subscription concerns.

`expression` says what one is, `text` reads it, `host` is what it looks at, `evaluate` decides, and `rules` says where
which kind may be used. `docs/content.md` has the language with examples.
"""
