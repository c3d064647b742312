"""Content-based publish/subscribe for mobile ad hoc networks."""
