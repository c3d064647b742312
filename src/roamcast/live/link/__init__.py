"""The link of a live node: sealed frames on UDP, acknowledged unicast, fragments, neighbours and their limits."""
