"""Reading configuration: TOML files, values typed by people, fields by name, errors that a person can act on."""
