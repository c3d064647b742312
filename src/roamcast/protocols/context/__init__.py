"""Context-aware publish/subscribe: events and subscriptions in space, time and situation (Frey and Roman 2007)."""
