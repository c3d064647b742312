"""ODMRP, a mesh of forwarders for each group, and its extension by content (Yoneki, Bacon 2004).

* `messages`: Join Requests, Join Tables, Data;
* `parameters`: every choice that the paper leaves open is a switch;
* `extension`: the interface between routing and the layer above it, and plain ODMRP's side of it, fixed channels;
* `content`: the extended protocol's side of it, summaries of subscriptions and digests of events;
* `tables`: the soft state of a node;
* `broker`: the rules, and the catalogue's entry.

`docs/protocols/odmrp.md` has the choices and their effect.
"""
