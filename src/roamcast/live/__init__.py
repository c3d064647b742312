"""The live world: the brokers of `protocols` on real sockets, clocks and disks."""
