"""Why did this event not get there? Causes, from the facts of a run.

`Explainer` answers for one event and one node, `missed` for all pairs that a run missed. `causes.py` has the
vocabulary, `explain.py` the order in which it is asked, `ways.py` where a way was broken, `copies.py` who had the
event. Used by `roamcast why`, by the replay page and by the measure `causes`.
"""
