"""ODMRP, a mesh of forwarders around those who want something, and its extension by content (Yoneki, Bacon 2004).

* `messages`: Join Requests, Join Tables, Data;
* `parameters`: every choice that the paper leaves open is a switch;
* `extension`: what routing asks of the layer above it, and plain ODMRP's answer, fixed channels;
* `content`: the extended protocol's answer, summaries of subscriptions and digests of events;
* `tables`: the soft state of a node;
* `broker`: the rules, and the catalogue's entry.

`docs/protocols/odmrp.md` has the choices and what they change.
"""
