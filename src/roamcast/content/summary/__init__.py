"""Summaries of a broker's subscriptions and digests of events, after Yoneki and Bacon (2004), section III.C.

A summary passes the digest of every event that one of its filters matches, and of some that none matches: false
positives only. The paper's four structures, and where they are:

* ETN, event type name: the hash of the type, in `summary.Entry`;
* EAL, element association list: which elements one subscription constrains together, the rows of `summary.Entry`;
* AEC, arithmetic element constraint: `arithmetic.Arithmetic`;
* SEC, string element constraint: `strings.Strings`, three Bloom vectors.

Summaries and digests are msgspec structs, to be fields of messages. Both are bounded, and so is the work on them.
`docs/content.md` has the choices that the paper leaves open, with what they cost.
"""
