"""The compiled part of `contacts`, `islands` and `possible`: loops over pairs, and sweeps through time.

One file, because numba, which caches compiled code between processes, does not notice when a function in another file
has changed. The rules are those of the three modules that call it; this file owns only the data structure of the
*current graph*:

* A link c between two nodes is two *arcs*, 2c and 2c + 1, one for each direction. `target[arc]` is where it leads, so
  `target[arc ^ 1]` is where it comes from. The arcs that leave a node are a doubly linked list through `after` and
  `before`, beginning with `head[node]`; -1 ends it.
* *Labels* divide the nodes into connected components, here called parts: the label of a node is the smallest node of
  its part, so that two divisions are equal if and only if their labels are. A new link joins two parts or none. A lost
  link divides a part only if no other path is left; where nodes have many neighbours, another path is found within a
  few steps. Union-find would not do: it cannot divide.
"""

from typing import Final

import numba
import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

NOBODY: Final = -1
NEVER: Final = np.iinfo(np.int64).max
"""A time that never comes."""
_SLACK: Final = 1e-3
"""Metres by which a pair must be out of range to be skipped without a closer look: far above rounding."""


# --- Who is in range, and when ----------------------------------------------------------------------------------------


@numba.njit(cache=True)
def pass_by(
    first: Ints, start: Ints, stop: Ints, way: Floats, reach: Floats, room: Ints, end: int, one_way: bool
) -> Ints:
    """Contacts as rows (sender, receiver, begin, until). Node n has the legs first[n] to first[n + 1] - 1, in order."""
    nodes = len(first) - 1
    rows, count = np.empty((1024, 4), np.int64), 0
    for a in range(nodes):
        for b in range(0 if one_way else a + 1, nodes):
            if a == b:
                continue
            i, j = first[a], first[b]
            begin, until = -1, -1
            while i < first[a + 1] and j < first[b + 1]:
                low, high = max(start[i], start[j]), min(stop[i], stop[j], end)
                if low >= end:
                    break
                if low < high and room[i] == room[j]:
                    bound = reach[i] if one_way else min(reach[i], reach[j])
                    came, went = _within(low, high, bound, i, j, start, way)
                    if came < went and came == until:  # a leg ended meanwhile
                        until = went
                    elif came < went:
                        if until > begin:
                            rows, count = _append(rows, count, a, b, begin, until)
                        begin, until = came, went
                if stop[i] <= stop[j]:
                    i += 1
                else:
                    j += 1
            if until > begin:
                rows, count = _append(rows, count, a, b, begin, until)
    return rows[:count]


@numba.njit(cache=True)
def _apart(t: int, i: int, j: int, start: Ints, way: Floats) -> tuple[float, float]:
    """The vector from the node on leg i to the one on leg j, computed as the core does, operation by operation."""
    dx = (way[j, 0] + way[j, 2] * (t - start[j])) - (way[i, 0] + way[i, 2] * (t - start[i]))
    dy = (way[j, 1] + way[j, 3] * (t - start[j])) - (way[i, 1] + way[i, 3] * (t - start[i]))
    return dx, dy


@numba.njit(cache=True)
def _near(t: int, bound: float, i: int, j: int, start: Ints, way: Floats) -> bool:
    dx, dy = _apart(t, i, j, start, way)
    return dx * dx + dy * dy <= bound * bound


@numba.njit(cache=True)
def _within(low: int, high: int, bound: float, i: int, j: int, start: Ints, way: Floats) -> tuple[int, int]:
    """The interval within [low, high) during which nodes on legs i and j are in range; empty if never.

    The squared distance is a parabola in time: its minimum and its roots say where to look. `_near` at whole
    nanoseconds decides, so that rounding here costs a step or two of a search and never changes the result.
    """
    far = bound + _SLACK
    dx, dy = _apart(low, i, j, start, way)
    wx, wy = way[j, 2] - way[i, 2], way[j, 3] - way[i, 3]
    last_x, last_y = dx + wx * (high - low), dy + wy * (high - low)
    if min(dx, last_x) > far or max(dx, last_x) < -far or min(dy, last_y) > far or max(dy, last_y) < -far:
        return low, low
    speed2 = wx * wx + wy * wy
    if speed2 == 0.0:
        return (low, high) if _near(low, bound, i, j, start, way) else (low, low)
    closest = -(dx * wx + dy * wy) / speed2  # ns after `low`
    least = dx * dx + dy * dy - closest * closest * speed2
    middle = low + round(min(max(closest, 0.0), float(high - low - 1)))
    inside = -1
    for t in (middle, middle - 1, middle + 1):
        if low <= t < high and _near(t, bound, i, j, start, way):
            inside = t
            break
    if inside < 0:
        return low, low
    half = np.sqrt(max(bound * bound - least, 0.0) / speed2)
    came, went = low, high
    if not _near(low, bound, i, j, start, way):
        guess = low + int(min(max(closest - half, 0.0), float(high - low)))
        came = _edge(low, inside, guess, bound, i, j, start, way)
    if not _near(high - 1, bound, i, j, start, way):
        guess = low + int(min(max(closest + half, 0.0), float(high - low)))
        went = _edge(high - 1, inside, guess, bound, i, j, start, way) + 1
    return came, went


@numba.njit(cache=True)
def _edge(outside: int, inside: int, guess: int, bound: float, i: int, j: int, start: Ints, way: Floats) -> int:
    """The instant in range nearest to `outside`, which is out of range; it is probably near `guess`."""
    for t in (guess - 1, guess + 2):
        if min(outside, inside) < t < max(outside, inside):
            if _near(t, bound, i, j, start, way):
                inside = t
            else:
                outside = t
    while abs(inside - outside) > 1:
        t = min(outside, inside) + abs(inside - outside) // 2
        if _near(t, bound, i, j, start, way):
            inside = t
        else:
            outside = t
    return inside


@numba.njit(cache=True)
def overlaps(key: Ints, begin: Ints, until: Ints, key2: Ints, begin2: Ints, until2: Ints) -> tuple[Ints, Ints, Ints]:
    rows = np.empty((max(16, len(key)), 4), np.int64)
    count, first = 0, 0
    for one in range(len(key)):
        while first < len(key2) and (
            key2[first] < key[one] or (key2[first] == key[one] and until2[first] <= begin[one])
        ):
            first += 1
        other = first
        while other < len(key2) and key2[other] == key[one] and begin2[other] < until[one]:
            rows, count = _append(rows, count, one, 0, max(begin[one], begin2[other]), min(until[one], until2[other]))
            other += 1
    return rows[:count, 0].copy(), rows[:count, 2].copy(), rows[:count, 3].copy()


@numba.njit(cache=True)
def _append(rows: Ints, count: int, a: int, b: int, begin: int, until: int) -> tuple[Ints, int]:
    """Appends a row to an array with `count` rows in use; returns the array, enlarged if it was full, and the count."""
    if count == len(rows):
        longer = np.empty((2 * count, 4), np.int64)
        longer[:count] = rows
        rows = longer
    rows[count, 0], rows[count, 1], rows[count, 2], rows[count, 3] = a, b, begin, until
    return rows, count + 1


# --- The current graph ------------------------------------------------------------------------------------------------


@numba.njit(cache=True)
def _link(arc: int, head: Ints, after: Ints, before: Ints, target: Ints) -> None:
    """Adds an arc to the graph."""
    node = target[arc ^ 1]
    after[arc], before[arc] = head[node], NOBODY
    if head[node] != NOBODY:
        before[head[node]] = arc
    head[node] = arc


@numba.njit(cache=True)
def _unlink(arc: int, head: Ints, after: Ints, before: Ints, target: Ints) -> None:
    """Removes an arc from the graph."""
    if before[arc] == NOBODY:
        head[target[arc ^ 1]] = after[arc]
    else:
        after[before[arc]] = after[arc]
    if after[arc] != NOBODY:
        before[after[arc]] = before[arc]


@numba.njit(cache=True)
def _search(
    source: int, hops: int, goal: int, head: Ints, after: Ints, target: Ints, distance: Ints, queue: Ints
) -> int:
    """Breadth-first search over at most so many hops, until `goal` is found; returns how many nodes were reached.

    They are in `queue`, nearest first, with their distances. All distances must be -1 before: see `_forget`.
    """
    distance[source], queue[0] = 0, source
    place, reached = 0, 1
    while place < reached and distance[queue[place]] < hops:
        arc = head[queue[place]]
        while arc != NOBODY:
            other = target[arc]
            if distance[other] < 0:
                distance[other] = distance[queue[place]] + 1
                queue[reached] = other
                reached += 1
                if other == goal:
                    return reached
            arc = after[arc]
        place += 1
    return reached


@numba.njit(cache=True)
def _forget(distance: Ints, queue: Ints, reached: int) -> None:
    """Resets what a search has written to `distance`."""
    for place in range(reached):
        distance[queue[place]] = NOBODY


@numba.njit(cache=True)
def _joined(label: Ints, a: int, b: int) -> bool:
    """Updates the labels after a new link between a and b; returns whether two parts became one."""
    low, high = min(label[a], label[b]), max(label[a], label[b])
    if low == high:
        return False
    for node in range(len(label)):
        if label[node] == high:
            label[node] = low
    return True


@numba.njit(cache=True)
def _divided(label: Ints, a: int, b: int, head: Ints, after: Ints, target: Ints, distance: Ints, queue: Ints) -> bool:
    """Updates the labels after a lost link between a and b; returns whether a part became two."""
    reached = _search(a, len(label), b, head, after, target, distance, queue)
    apart: bool = distance[b] < 0
    if apart:
        old, here, there = label[a], len(label), len(label)
        for node in range(len(label)):
            if label[node] == old and distance[node] < 0:
                there = min(there, node)
            elif label[node] == old:
                here = min(here, node)
        for node in range(len(label)):
            if label[node] == old:
                label[node] = there if distance[node] < 0 else here
    _forget(distance, queue, reached)
    return apart


@numba.njit(cache=True)
def _change(
    one: int,
    up: bool,
    label: Ints,
    head: Ints,
    after: Ints,
    before: Ints,
    target: Ints,
    distance: Ints,
    queue: Ints,
) -> bool:
    """Adds or removes link number `one`, in both directions; returns whether the parts changed."""
    a, b = target[2 * one + 1], target[2 * one]
    if up:
        _link(2 * one, head, after, before, target)
        _link(2 * one + 1, head, after, before, target)
        return _joined(label, a, b)
    _unlink(2 * one, head, after, before, target)
    _unlink(2 * one + 1, head, after, before, target)
    return _divided(label, a, b, head, after, target, distance, queue)


# --- Islands, and a tree over them ------------------------------------------------------------------------------------


@numba.njit(cache=True)
def look(
    nodes: int,
    looks: Ints,
    target: Ints,
    time: Ints,
    which: Ints,
    up: Bools,
    on_time: Ints,
    on_node: Ints,
    on_up: Bools,
    widths: bool,
) -> Ints:
    """For each look, a row with the columns of `Islands` from `present` on."""
    found = np.zeros((len(looks), 7), np.int64)
    head, after, before = np.full(nodes, NOBODY), np.empty(len(target), np.int64), np.empty(len(target), np.int64)
    label, distance, queue = np.arange(nodes), np.full(nodes, NOBODY), np.empty(nodes, np.int64)
    on, touched = np.zeros(nodes, np.bool_), np.zeros(nodes, np.bool_)
    width = np.zeros(nodes, np.int64)
    row, on_row = 0, 0
    for number in range(len(looks)):
        began, changed = row, number == 0
        while row < len(time) and time[row] <= looks[number]:
            changed |= _change(which[row], up[row], label, head, after, before, target, distance, queue)
            row += 1
        while on_row < len(on_time) and on_time[on_row] <= looks[number]:
            on[on_node[on_row]] = on_up[on_row]
            on_row += 1
            changed = True
        if widths and row > began:
            # An island that no changed contact touches has the same nodes and contacts as before.
            touched[:] = False
            for one in which[began:row]:
                touched[label[target[2 * one]]] = True
                touched[label[target[2 * one + 1]]] = True
            _measure_widths(label, touched, head, after, target, distance, queue, width)
            changed = True
        if changed:
            _count(label, on, width, found[number])
        else:
            found[number] = found[number - 1]
    return found


@numba.njit(cache=True)
def _count(label: Ints, on: Bools, width: Ints, found: Ints) -> None:
    size = np.zeros(len(label), np.int64)
    for node in range(len(label)):
        if on[node]:
            size[label[node]] += 1
    for part in range(len(label)):
        many = size[part]
        if many:
            found[0] += many
            found[1] += 1
            found[2] = max(found[2], many)
            found[3] += many * many
            found[4] += width[part]
            found[5] += many * width[part]
            found[6] = max(found[6], width[part])


@numba.njit(cache=True)
def _measure_widths(
    label: Ints, touched: Bools, head: Ints, after: Ints, target: Ints, distance: Ints, queue: Ints, width: Ints
) -> None:
    """The widths of the touched islands.

    A search from one node bounds every node's greatest distance: for a node d hops away, it is at most d more. Nodes
    whose bound does not exceed the width found so far need no search of their own, so a few searches are enough.
    """
    nodes = len(label)
    bound = np.full(nodes, nodes)
    members = np.argsort(label, kind="mergesort")
    begin = 0
    while begin < nodes:
        part, end = label[members[begin]], begin
        while end < nodes and label[members[end]] == part:
            end += 1
        if touched[part]:
            width[part] = 0
            while end - begin > 1:
                centre = members[begin]
                for node in members[begin:end]:
                    if bound[node] > bound[centre]:
                        centre = node
                if bound[centre] <= width[part]:
                    break
                reached = _search(centre, nodes, NOBODY, head, after, target, distance, queue)
                farthest = distance[queue[reached - 1]]
                width[part] = max(width[part], farthest)
                for node in queue[:reached]:
                    bound[node] = min(bound[node], farthest + distance[node])
                _forget(distance, queue, reached)
        begin = end


@numba.njit(cache=True)
def paths(nodes: int, looks: Ints, target: Ints, time: Ints, which: Ints, up: Bools) -> Ints:
    """For each look: the total hops of all shortest paths, and how many ordered pairs of nodes have one."""
    found = np.zeros((len(looks), 2), np.int64)
    head, after, before = np.full(nodes, NOBODY), np.empty(len(target), np.int64), np.empty(len(target), np.int64)
    distance, queue = np.full(nodes, NOBODY), np.empty(nodes, np.int64)
    row = 0
    for number in range(len(looks)):
        while row < len(time) and time[row] <= looks[number]:
            for arc in (2 * which[row], 2 * which[row] + 1):
                if up[row]:
                    _link(arc, head, after, before, target)
                else:
                    _unlink(arc, head, after, before, target)
            row += 1
        for source in range(nodes):
            reached = _search(source, nodes, NOBODY, head, after, target, distance, queue)
            for node in queue[:reached]:
                found[number, 0] += distance[node]
            found[number, 1] += reached - 1
            _forget(distance, queue, reached)
    return found


@numba.njit(cache=True)
def compare(
    nodes: int,
    looks: Ints,
    target: Ints,
    time: Ints,
    which: Ints,
    up: Bools,
    target2: Ints,
    time2: Ints,
    which2: Ints,
    up2: Bools,
) -> Ints:
    """For each look, a row: the number of parts of the first graph, whether both have the same parts, the ordered pairs
    of nodes that both connect, and those that the second connects."""
    found = np.zeros((len(looks), 4), np.int64)
    head, after, before = np.full(nodes, NOBODY), np.empty(len(target), np.int64), np.empty(len(target), np.int64)
    head2, after2, before2 = np.full(nodes, NOBODY), np.empty(len(target2), np.int64), np.empty(len(target2), np.int64)
    label, label2 = np.arange(nodes), np.arange(nodes)
    distance, queue = np.full(nodes, NOBODY), np.empty(nodes, np.int64)
    row, row2 = 0, 0
    for number in range(len(looks)):
        changed = number == 0
        while row < len(time) and time[row] <= looks[number]:
            changed |= _change(which[row], up[row], label, head, after, before, target, distance, queue)
            row += 1
        while row2 < len(time2) and time2[row2] <= looks[number]:
            changed |= _change(which2[row2], up2[row2], label2, head2, after2, before2, target2, distance, queue)
            row2 += 1
        if changed:
            found[number, 0] = (label == np.arange(nodes)).sum()
            found[number, 1] = (label == label2).all()
            found[number, 2] = _pairs(label * nodes + label2)
            found[number, 3] = _pairs(label2)
        else:
            found[number] = found[number - 1]
    return found


@numba.njit(cache=True)
def _pairs(labels: Ints) -> int:
    """How many ordered pairs of nodes share a label."""
    alike = np.sort(labels)  # puts equal labels side by side
    found, run = 0, 0
    for place in range(len(alike)):
        run = run + 1 if place and alike[place] == alike[place - 1] else 1
        found += 2 * (run - 1)
    return found


# --- What was possible ------------------------------------------------------------------------------------------------


@numba.njit(cache=True)
def earliest(
    publisher: Ints,
    published: Ints,
    carriers: Bools,
    transfer: int,
    of_node: Ints,
    met: Ints,
    first: Ints,
    begin: Ints,
    last: Ints,
) -> Ints:
    """Dijkstra's algorithm over time, for one event at a time: the node that has it earliest passes it on next."""
    nodes = len(of_node) - 1
    at = np.full((len(publisher), nodes), NEVER)
    waiting = np.empty(nodes, np.int64)
    for event in range(len(publisher)):
        arrival, carries = at[event], carriers[event if len(carriers) > 1 else 0]
        settled = np.zeros(nodes, np.bool_)
        arrival[publisher[event]] = published[event]
        waiting[0] = publisher[event]
        count = 1  # nodes that have the event and have not passed it on
        while count:
            place = 0
            for other in range(1, count):
                if arrival[waiting[other]] < arrival[waiting[place]]:
                    place = other
            node = waiting[place]
            count -= 1
            waiting[place] = waiting[count]
            settled[node] = True
            if not carries[node] and node != publisher[event]:
                continue
            now = arrival[node]
            for pair in range(of_node[node], of_node[node + 1]):
                other = met[pair]
                if settled[other]:
                    continue
                contact = first[pair] + np.searchsorted(last[first[pair] : first[pair + 1]], now)
                if contact == first[pair + 1]:
                    continue  # they do not meet again
                then = max(now, begin[contact]) + transfer
                if then < arrival[other]:
                    if arrival[other] == NEVER:
                        waiting[count] = other
                        count += 1
                    arrival[other] = then
    return at


@numba.njit(cache=True)
def relayed(nodes: int, hops: int, target: Ints, time: Ints, which: Ints, up: Bools) -> Ints:
    """Whenever contacts change, repeats the search from every node near enough to a change, found by following arcs
    backwards.

    Even arcs lead from senders to receivers, odd ones back, in separate lists.
    """
    rows, count = np.empty((1024, 4), np.int64), 0
    head, back = np.full(nodes, NOBODY), np.full(nodes, NOBODY)
    after, before = np.empty(len(target), np.int64), np.empty(len(target), np.int64)
    distance, queue = np.full(nodes, NOBODY), np.empty(nodes, np.int64)
    since = np.full((nodes, nodes), NOBODY)
    affected = np.zeros(nodes, np.bool_)
    row = 0
    while row < len(time):
        now, began = time[row], row
        while row < len(time) and time[row] == now:
            row += 1
        for moment in range(2):  # in the graph before the change, and after it
            for one in which[began:row]:
                reached = _search(target[2 * one + 1], hops - 1, NOBODY, back, after, target, distance, queue)
                for node in queue[:reached]:
                    affected[node] = True
                _forget(distance, queue, reached)
            if moment == 0:
                for number in range(began, row):
                    arc = 2 * which[number]
                    if up[number]:
                        _link(arc, head, after, before, target)
                        _link(arc + 1, back, after, before, target)
                    else:
                        _unlink(arc, head, after, before, target)
                        _unlink(arc + 1, back, after, before, target)
        for node in range(nodes):
            if not affected[node]:
                continue
            affected[node] = False
            reached = _search(node, hops, NOBODY, head, after, target, distance, queue)
            for other in range(nodes):
                if other == node or (distance[other] < 0) == (since[node, other] == NOBODY):
                    continue
                if distance[other] >= 0:
                    since[node, other] = now
                else:
                    rows, count = _append(rows, count, node, other, since[node, other], now)
                    since[node, other] = NOBODY
            _forget(distance, queue, reached)
    assert (since == NOBODY).all(), "every contact has an end"
    return rows[:count]
