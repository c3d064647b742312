"""What was possible, and how much of it a protocol achieved.

The limit is that of `roamcast.analysis.possible`: contacts alone, instantaneous transfers, channels that never fill up.
The rules this file owns:

* The pairs and their limit are those of `roamcast.analysis.limits`.
* Links may be one-way, and a range drawn for every frame counts with its upper bound: some frame may reach that far.
* Two kinds of carriers: all nodes; or, as in the opportunistic protocol with a scope of one hop, only the nodes whose
  subscriptions the event matches.
* The limit depends on the world, not on the protocol: it is computed once per world .
"""

from roamcast.analysis.limits import delays, limit
from roamcast.analysis.measures.ages import AGES
from roamcast.analysis.measures.measure import Values, family, good_share
from roamcast.analysis.possible import NEVER
from roamcast.analysis.run import Run, mean
from roamcast.units import SECOND


@family(
    good_share(
        "possible",
        "possible at all (share of pairs)",
        "Share of the pairs that any protocol could have delivered before the run ended",
    ),
    good_share(
        "possible_interested",
        "possible, carried by the interested (share of pairs)",
        "Share of the pairs that could have been delivered if only interested nodes carry, over one hop",
    ),
    good_share(
        "possible_at_once",
        "possible at once (share of pairs)",
        "Share of the pairs between which there was a path at the instant of publication",
    ),
    good_share(
        "delivered_of_possible",
        "delivered of what was possible (share of pairs)",
        "Share of the pairs that could have been delivered which were",
    ),
    *(
        one
        for age in AGES
        for one in (
            good_share(
                f"possible_{age}",
                f"possible within {age // 60} min (share of pairs)",
                f"Share of the pairs that any protocol could have delivered within {age // 60} min",
            ),
            good_share(
                f"possible_interested_{age}",
                f"possible within {age // 60} min, carried by the interested (share of pairs)",
                f"Share of the pairs that could have been delivered within {age // 60} min if only the interested "
                "carry",
            ),
        )
    ),
)
def possible(run: Run) -> Values:
    found = limit(run) if run.has("publish", "subscribe") else None
    if found is None:
        return {}
    could = found.possible != NEVER
    values = {
        "possible": mean(could),
        "possible_interested": mean(found.interested != NEVER),
        "possible_at_once": mean(found.possible == 0),
        "delivered_of_possible": mean((delays(run) != NEVER)[could]),
    }
    for age in AGES:
        old_enough = found.published <= run.end - age * SECOND
        values[f"possible_{age}"] = mean(found.possible[old_enough] <= age * SECOND)
        values[f"possible_interested_{age}"] = mean(found.interested[old_enough] <= age * SECOND)
    return values
