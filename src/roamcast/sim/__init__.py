"""A simulated world: movement, radio and medium access, hosting the brokers of `protocols` unchanged."""
