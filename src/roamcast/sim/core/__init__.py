"""The part of the world below the brokers: movement, radio and medium access, compiled and in plain Python."""
