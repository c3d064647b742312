"""The compiled core: `docs/model.md` in numba. `reference.py` is the same in plain Python; read that first.

Everything compiled is in this one file on purpose: numba keys a cached function by its own file alone, so a callee
edited in another file would go unnoticed. The state is made and kept by compiled code and handed over as an address: a
crossing costs a third of a microsecond, and, unlike a jitclass, the code is cached between processes.

Names: a step has the name it has in `reference.py`, in the words of the page. `s` is the state; in it `n` are the
nodes, `m` the messages, `t` the transmissions, `r` the *receptions* (one transmission at one node that senses it), `p`
the receptions *present* at each node, `a` the *reassemblies* (what one node has of one broadcast that goes on: the
fragments of a bulk bit by bit, or how many of an ordinary message), `h` is the heap, `b` the background traffic that is
due, `g_` the grid, `q_` the queues, `k_` what nodes know, `u_` the upcalls waiting to be taken. Numbers of nodes are i
(who acts) and j (who receives).

A frame starts and ends at many nodes that have nothing to do with it. So `_start_everywhere` and `_end_where_sensed` go
through all of them without a branch that the processor would have to guess, and leave `_frame_starts` and `_schedule`
to the few nodes that it concerns. In such loops indices are unsigned: else each is checked for being negative.
"""

import struct
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

import numpy as np
from numba import from_dtype, njit, types
from numba.core import cgutils
from numba.core.imputils import lower_getattr_generic, lower_setattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.experimental import structref
from numba.extending import intrinsic as _intrinsic
from numba.extending import models, register_model

from roamcast.sim.core.interface import (
    ACK_BYTES,
    ACK_KIND,
    BACKGROUND_KIND,
    EVERYONE,
    METRICS,
    PREAMBLE,
    STREAMS,
    Frame,
    Outcome,
    Settings,
    Told,
    Upcall,
    first_state,
)
from roamcast.sim.known import subjects_followed

intrinsic: Any = _intrinsic
new: Any = structref.new

F = TypeVar("F", bound=Callable[..., Any])


_OPTIONS: Final[dict[str, Any]] = {"fastmath": False, "error_model": "numpy"}
"""No fastmath, so that the arithmetic is the reference's to the last bit."""
_INSIDE: Final[dict[str, Any]] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""What only compiled code calls is part of its callers' machine code: by itself it is neither called nor cached."""


def entry(function: F) -> F:
    """`njit`, typed, for what Python calls."""
    return cast(F, njit(cache=True, **_OPTIONS)(function))


def compiled(function: F) -> F:
    """The same for what only compiled code calls."""
    return cast(F, njit(**_OPTIONS, **_INSIDE)(function))


def inlined(function: F) -> F:
    """The same for what is called in one place: its body is put there, and is not compiled by itself as well."""
    return cast(F, njit(**_OPTIONS, **_INSIDE, inline="always")(function))


# --- Constants -----------------------------------------------------------------------------------------------------


def _int64s(*values: int) -> Any:
    """Numba compiles a function anew for each literal argument; of a constant of numpy it knows the type alone."""
    return tuple(np.int64(value) for value in values)


(REACHED, BROADCAST, DELIVERED, FINISHED, UNREACHABLE, DROPPED, FRAME, GONE) = _int64s(*Upcall)
(RECEIVED, HALF_DUPLEX, COLLISION, RANDOM_LOSS) = _int64s(*Outcome)
(PACKETS, BITS, AIRTIME, RECEPTIONS, LOST_COLLISION, LOST_HALF_DUPLEX, LOST_RANDOM, QUEUE_FULL, GIVEN_UP, MESSAGES) = (
    _int64s(*range(len(METRICS)))
)
(BACKOFF, RANGE, LOSS, BACKGROUND) = _int64s(*range(len(STREAMS)))
NONE, ZERO, ONE, ACK_FRAME, ACK_SIZE, ACK_BITS = _int64s(-1, 0, 1, ACK_KIND, ACK_BYTES, 192 + 8 * ACK_BYTES)

# What happens in an event. The lowest two bits are its class: events of one instant go in the order of their classes.
(TX_END, ACK_DUE, ACK_WAIT_OVER, NEXT_FRAGMENT, RELEASE, BACKGROUND_DUE, ACCESS) = _int64s(0, 1, 5, 9, 2, 6, 3)
CLASS_SHIFT = 60
SUBJECT_BITS = 30
"""Of a node, where an event is about two."""

# Where a message is: nowhere; waiting for its release, or for its node to be on again; in the queue or being served;
# or forgotten by its node, and the host is still to be told.
(FREE, DELAYED, QUEUED, DISCARDED) = range(4)

# What a node is doing about the message it serves.
(CONTENDING, AWAITING_ACK, BETWEEN_FRAGMENTS) = range(3)

# What a transmission is at a node that senses it.
(IS_RECEIVABLE, IS_HALF_DUPLEX, IS_COLLIDED, IS_LOST, HAS_BEGUN) = (1, 2, 4, 8, 16)
UNDECIDED = IS_RECEIVABLE | IS_HALF_DUPLEX | IS_COLLIDED
"""Of these, only the first is set while a frame can still be received."""

# The queues of a node; the last holds what was released while it was off.
(URGENT, ORDINARY, HELD) = _int64s(*range(3))

SEND, WITHDRAW, FOLLOW, BEGIN_AGAIN, KNOW = range(5)
COMMAND_WIDTH = 12
COMMANDS = 256
MAX_OVER = 256
"""Handles of messages that are over, and of which nobody needs to be told, in one answer."""
(ALL, SILENT) = (int(Told.ALL), int(Told.SILENT))
_COMMAND_BYTES = 8 * COMMAND_WIDTH

GAMMA, MIX_1, MIX_2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
U0, U1, S30, S27, S31, S11 = np.uint64(0), np.uint64(1), np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
UNIT = 2.0**-53

NO_LINK = 2.0
MIDDLE = 5_000_000_000_000_000
"""Of the longest run, ns. Counted from here, every time in it is less than 2^53, so a float64 has it exactly."""
MAX_SORTED = 64
"""Up to here, events are sorted; a heap of a quarter of this is sorted again."""
SMALL_NETWORK = 256
"""Up to here, asking every node is faster than the grid."""
DRIFT = 0.25
"""The grid is laid anew when somebody may have moved this part of a cell."""
RANKED = 256
"""Up to here, counting who comes before each is faster than sorting: there is nothing to predict."""
POSITION_BITS = 31

# --- State ---------------------------------------------------------------------------------------------------------

_SETTING_INTS = (
    *("nodes", "kinds", "record", "links", "surroundings", "capture", "ideal", "kbps", "basic_kbps", "header", "mtu"),
    *("slot", "sifs", "difs", "ack_wait", "cca", "cw_min", "cw_max", "retries", "queue"),
    *("background_interval", "background_size", "background_flood", "background_jitter", "overhear"),
)
_SETTING_FLOATS = ("width", "height", "sense", "range_low", "range_high", "threshold", "loss")


def _record_of(ints: str, floats: str = "") -> np.dtype[Any]:
    return np.dtype([*_typed(np.int64, ints), *_typed(np.float64, floats)])


def _typed(kind: Any, names: str) -> list[tuple[str, Any]]:
    return [(name, kind) for name in names.split()]


# A number of 32 bits that becomes an argument is made one of 64 bits first: for another type numba compiles the callee,
# and all that it calls, once more.
_NODE = np.dtype(
    [
        # What every frame that starts or ends at a node asks for: 32 bytes, half a cache line. The medium as the node
        # sees it; the message it serves; how many frames that it could receive are present.
        *_typed(np.int64, "idle_from nav"),
        *_typed(np.int32, "served backoff receivable"),
        *_typed(np.int8, "transmitting eifs phase on"),
    ]
)
# What else there is of a node: the serial and time of its access; the serial of its wait for an acknowledgement; how
# often it has been switched off (what began in another era is not its business any more); how many messages wait; where
# it is.
_REST = _record_of("access access_time wait era window retry waiting made room", "range")
_MESSAGE = _record_of(
    "node to fragments full last bulk kind release next urgent fragment arrived stage on_air reassembly origin number "
    "packets bits airtime told subject"
)
_TRANSMISSION = _record_of("sender message to kind size packets start first receivable count block next era")
_RECEPTION = np.dtype(
    [
        *_typed(np.uint32, "node"),
        *_typed(np.int32, "flags"),
        # When a node that was quiet senses it, else 0. Of the first frame present it is since when the node is busy.
        *_typed(np.int64, "busy_from"),
        *_typed(np.float64, "d2 reach2"),
    ]
)
# The receptions present at a node are a ring, in the order in which they started. Entry j of `p` is where the ring of
# node j begins and ends; those of receptions follow, so the first reception has the number `nodes + 1`. The node with
# the number `nodes` is nobody: it has what was present at a node that was switched off.
_PRESENT = np.dtype(_typed(np.uint32, "next previous"))
_REASSEMBLY = _record_of("node fragments era next")
_EVENT = _record_of("time order data")
_LINK = _record_of("receiver next", "loss")
_ENTRY = _record_of("key value")

_I, _F = types.int64, types.float64


def _fields(kind: Any, names: str) -> list[tuple[str, Any]]:
    return [(name, kind) for name in names.split()]


_FIELDS = [
    *_fields(_I, " ".join(_SETTING_INTS)),
    *_fields(_F, " ".join(_SETTING_FLOATS)),
    *_fields(_I, "now serial h_size h_sorted b_size b_next m_size m_free t_size t_free r_size a_size a_free"),
    *_fields(
        _I, "u_count u_taken received recorded seen_size overheard_size small_network rooms g_columns g_rows g_time"
    ),
    *_fields(_I, "k_places over_count near_count far_count l_size l_free"),
    *_fields(_F, "fastest farthest g_cell g_jumps"),
    *_fields(_I[::1], "commands out receivers masks frame frame_nodes frame_outcomes u_code u_sender u_message"),
    *_fields(_I[::1], "place node_at near far found r_free first_link g_first k_once k_first k_number over"),
    *_fields(_F[::1], "start x y vx vy distance2 far_distance2 scratch"),
    *_fields(_I[:, ::1], "q_first q_last k_skipped"),
    *_fields(types.uint8[:, ::1], "k_known"),
    *_fields(_I[:, :, ::1], "totals"),
    *_fields(types.uint64[:, ::1], "random"),
    *_fields(from_dtype(_NODE)[::1], "n"),
    *_fields(from_dtype(_REST)[::1], "rest"),
    *_fields(from_dtype(_MESSAGE)[::1], "m"),
    *_fields(from_dtype(_TRANSMISSION)[::1], "t"),
    *_fields(from_dtype(_RECEPTION)[::1], "r"),
    *_fields(from_dtype(_PRESENT)[::1], "p"),
    *_fields(from_dtype(_REASSEMBLY)[::1], "a"),
    *_fields(from_dtype(_EVENT)[::1], "h b"),
    *_fields(from_dtype(_LINK)[::1], "l"),
    *_fields(from_dtype(_ENTRY)[::1], "seen overheard"),
]


@structref.register
class _StateType(types.StructRef):
    """Owns the state: it allocates, counts references, and frees."""


class _StateProxy(structref.StructRefProxy):
    """Keeps the state alive on the Python side."""


structref.define_boxing(_StateType, _StateProxy)
STATE = _StateType(_FIELDS)


class _StatePointer(types.Type):
    """What compiled code works on: the same state, borrowed.

    Numba counts a reference for every array taken out of a structref, and for the structref at every call: two atomic
    operations each, a quarter of all time when measured. Arrays read through this pointer belong to nobody, so there
    is nothing to count; whoever calls keeps the state alive.
    """

    def __init__(self) -> None:
        super().__init__(name="roamcast.StatePointer")


POINTER = _StatePointer()
register_model(_StatePointer)(models.OpaqueModel)


@infer_getattr
class _StateAttributes(AttributeTemplate):
    key = _StatePointer

    def generic_resolve(self, pointer: Any, name: str) -> Any:  # type: ignore[override]  # numba wants it so
        return STATE.field_dict.get(name)


def _payload(context: Any, builder: Any, pointer: Any) -> Any:
    data = STATE.get_data_type()
    whole = builder.bitcast(pointer, context.get_value_type(data).as_pointer())
    return cgutils.create_struct_proxy(data, kind="data")(context, builder, ref=whole)


@lower_getattr_generic(_StatePointer)
def _get(context: Any, builder: Any, pointer_type: Any, pointer: Any, name: str) -> Any:
    value, kind = getattr(_payload(context, builder, pointer), name), STATE.field_dict[name]
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value=value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        array.parent = cgutils.get_null_value(array.parent.type)
        return array._getvalue()
    return value


@lower_setattr_generic(_StatePointer)
def _set(context: Any, builder: Any, signature: Any, arguments: Any, name: str) -> None:
    pointer, value = arguments
    payload, kind = _payload(context, builder, pointer), STATE.field_dict[name]
    value = context.cast(builder, value, signature.args[1], kind)
    context.nrt.incref(builder, kind, value)
    context.nrt.decref(builder, kind, getattr(payload, name))
    setattr(payload, name, value)


@intrinsic
def _state_at(typing_context: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return POINTER(types.int64), generate


@intrinsic
def _address_of(typing_context: Any, state: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        proxy = cgutils.create_struct_proxy(STATE)(context, builder, value=arguments[0])
        data = context.nrt.meminfo_data(builder, proxy.meminfo)
        return builder.ptrtoint(data, context.get_value_type(types.int64))

    return types.int64(STATE), generate


@entry
def _new_state() -> Any:
    return new(STATE)


@entry
def _address(state: Any) -> int:
    return _address_of(state)


@entry
def _fill(address: int, ints: Any, floats: Any, random: Any, small_network: int) -> None:
    s = _state_at(address)
    s.nodes, s.kinds, s.record, s.links, s.surroundings, s.capture, s.ideal = ints[:7]
    s.kbps, s.basic_kbps, s.header, s.mtu, s.slot, s.sifs, s.difs, s.ack_wait = ints[7:15]
    s.cca, s.cw_min, s.cw_max, s.retries, s.queue = ints[15:20]
    s.background_interval, s.background_size, s.background_flood, s.background_jitter, s.overhear = ints[20:25]
    s.small_network = small_network
    s.width, s.height, s.sense, s.range_low, s.range_high, s.threshold, s.loss = floats
    s.random = random
    if s.links:
        s.capture = 0  # no positions, no powers
    n = s.nodes

    s.n, s.rest = np.zeros(n + 1, _NODE), np.zeros(n + 1, _REST)  # with one for nobody
    s.p, s.r, s.r_size = np.zeros(n + 1024, _PRESENT), np.zeros(n + 1024, _RECEPTION), n + 1
    for i in range(n + 1):
        node, rest = s.n[i], s.rest[i]
        node.served, node.backoff, node.on = -1, -1, 1
        node.idle_from = -s.ack_wait - s.difs  # the medium has been idle for ever
        rest.access, rest.wait, rest.window, rest.room = -1, -1, s.cw_min, -1
        s.p[i].next, s.p[i].previous = i, i
    s.q_first, s.q_last = np.full((n, 3), -1), np.full((n, 3), -1)

    s.first_link, s.l, s.l_free = np.full(n, -1), np.zeros(64, _LINK), -1
    s.seen, s.overheard = np.zeros(n * n + 1 if _has_room_for_all(s) else 64, _ENTRY), np.zeros(64, _ENTRY)
    s.totals = np.zeros((s.kinds, len(METRICS), n), np.int64)

    s.h, s.m = np.zeros(1024, _EVENT), np.zeros(1024, _MESSAGE)
    s.t, s.a = np.zeros(64, _TRANSMISSION), np.zeros(64, _REASSEMBLY)
    s.m_free, s.t_free, s.a_free = -1, -1, -1
    s.r_free = np.full(63, -1)
    s.m_size = 1  # the core's own messages have odd numbers, the host's even ones

    s.start, s.x, s.y, s.vx, s.vy = np.full(n, _exact(ZERO)), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    s.place, s.node_at = np.arange(n), np.arange(n)
    s.near, s.distance2 = _ints(n), np.zeros(n)
    s.far, s.far_distance2 = _ints(n), np.zeros(n)
    s.found, s.scratch = _ints(n), np.zeros(n)
    s.g_first, s.g_jumps = _ints(2), np.inf
    s.out, s.receivers, s.masks, s.over = _ints(8), _ints(n), _ints(n), _ints(MAX_OVER)
    s.frame, s.frame_nodes, s.frame_outcomes = _ints(8), _ints(n), _ints(n)
    s.commands = _ints(COMMANDS * COMMAND_WIDTH)
    s.u_code, s.u_sender, s.u_message = _ints(4), _ints(4), _ints(4)

    s.k_once, s.k_first, s.k_number = _ints(s.kinds), _ints(s.kinds), _ints(ZERO)
    s.k_skipped, s.k_known = np.zeros((s.kinds, n), np.int64), np.zeros((0, n), np.uint8)

    s.b, s.h_sorted = np.zeros(1, _EVENT), 1
    if s.background_interval > 0:
        for i in range(n):
            _push(s, int(_uniform(s, BACKGROUND, i) * s.background_interval), BACKGROUND_DUE, i)
        _take_turns(s)


@compiled
def _ints(size: int) -> Any:
    return np.zeros(size, np.int64)


@compiled
def _longer(old: Any, size: int) -> Any:
    new = np.zeros(size, old.dtype)
    new[: len(old)] = old
    return new


# --- What a node knows of another: tables by both, with room for those that there are ------------------------------


@compiled
def _pair(s: Any, node: int, other: int) -> int:
    return node * s.nodes + other + 1  # 0 is an empty entry


@compiled
def _place_of(table: Any, key: int) -> int:
    """Where the entry of a key is, or would be."""
    place: Any = np.int64((np.uint64(key) * GAMMA) >> S31) & (len(table) - 1)
    while table[place].key != key and table[place].key != 0:
        place = (place + 1) & (len(table) - 1)
    return place


@compiled
def _roomier(old: Any) -> Any:
    new = np.zeros(2 * len(old), old.dtype)
    for entry in old:
        if entry.key != 0:
            new[_place_of(new, entry.key)] = entry
    return new


@compiled
def _has_room_for_all(s: Any) -> bool:
    """Whether `seen` has an entry for every pair, at the place of its key: in a small network nothing is looked for."""
    return s.background_flood and s.nodes <= s.small_network


@compiled
def _remember_seen(s: Any, node: int, origin: int, number: int) -> bool:
    """The highest number of a background message known at a node, by origin. Whether this one is new."""
    key = _pair(s, origin, node)  # so, since those that hear a flood ask one after the other
    entry = s.seen[key if _has_room_for_all(s) else _place_of(s.seen, key)]
    if number <= entry.value:
        return False
    if entry.key == 0 and not _has_room_for_all(s):
        s.seen_size += 1
        if 2 * s.seen_size > len(s.seen):
            s.seen = _roomier(s.seen)
            entry = s.seen[_place_of(s.seen, key)]
    entry.key, entry.value = key, number
    return True


@compiled
def _remember_overheard(s: Any, node: int, sender: int) -> None:
    """When a background message last came to a node from another."""
    key = _pair(s, node, sender)
    entry = s.overheard[_place_of(s.overheard, key)]
    if entry.key == 0:
        s.overheard_size += 1
        if 2 * s.overheard_size > len(s.overheard):
            s.overheard = _roomier(s.overheard)
            entry = s.overheard[_place_of(s.overheard, key)]
    entry.key, entry.value = key, s.now


# --- Chance --------------------------------------------------------------------------------------------------------


@compiled
def _draw(s: Any, purpose: int, node: int) -> Any:
    z = s.random[purpose, node] + GAMMA
    s.random[purpose, node] = z
    z = (z ^ (z >> S30)) * MIX_1
    z = (z ^ (z >> S27)) * MIX_2
    return z ^ (z >> S31)


@compiled
def _uniform(s: Any, purpose: int, node: int) -> float:
    return np.float64(_draw(s, purpose, node) >> S11) * UNIT


@compiled
def _draw_backoff(s: Any, i: int, node: Any) -> None:
    node.backoff = np.int64(_draw(s, BACKOFF, i) & np.uint64(s.rest[i].window))


# --- The heap: (time, class and serial) -> (what, node or message) -------------------------------------------------
# While there are few events, they are sorted, the next one last: with little to move, that is faster. Sorted the other
# way round, they are a heap.


@compiled
def _push(s: Any, time: int, what: int, subject: int) -> int:
    """Schedules an event; gives its serial, by which a later change of mind is recognised."""
    serial = s.serial
    s.serial = serial + 1
    _push_as(s, serial, time, what, subject)
    return serial


@compiled
def _push_as(s: Any, serial: int, time: int, what: int, subject: int) -> None:
    order, data = ((what & 3) << CLASS_SHIFT) | serial, what | (subject << 4)
    if s.h_size == len(s.h):
        s.h = _longer(s.h, 2 * s.h_size)
    if s.h_sorted and s.h_size == MAX_SORTED:
        _make_heap(s)
    s.h_size += 1
    if s.h_sorted:
        _insert(s.h, s.h_size - 1, time, order, data)
        return
    h, hole = s.h, np.uint64(s.h_size - 1)  # unsigned: else every index is first checked for being negative
    while hole > U0:
        parent = (hole - U1) >> U1
        if h[parent].time < time or (h[parent].time == time and h[parent].order < order):
            break
        h[hole].time, h[hole].order, h[hole].data = h[parent].time, h[parent].order, h[parent].data
        hole = parent
    h[hole].time, h[hole].order, h[hole].data = time, order, data


@compiled
def _insert(h: Any, size: int, time: int, order: int, data: int) -> None:
    """Puts an event into its place among sorted ones."""
    hole = np.uint64(size)
    while hole > U0:
        later = hole - U1
        if h[later].time > time or (h[later].time == time and h[later].order > order):
            break
        h[hole].time, h[hole].order, h[hole].data = h[later].time, h[later].order, h[later].data
        hole = later
    h[hole].time, h[hole].order, h[hole].data = time, order, data


@compiled
def _make_heap(s: Any) -> None:
    """Turns sorted events round."""
    s.h_sorted = 0
    for k in range(s.h_size // 2):
        a, b = s.h[k], s.h[s.h_size - 1 - k]
        a.time, a.order, a.data, b.time, b.order, b.data = b.time, b.order, b.data, a.time, a.order, a.data


@compiled
def _next_event(s: Any) -> Any:
    return s.h[np.uint64(s.h_size - 1 if s.h_sorted else 0)]


@compiled
def _pop(s: Any) -> None:
    s.h_size -= 1
    if s.h_sorted:
        return
    size = np.uint64(s.h_size)
    h = s.h
    time, order, data = h[size].time, h[size].order, h[size].data
    hole = U0
    while True:
        child = (hole << U1) + U1
        if child >= size:
            break
        right = child + U1
        if right < size and (
            h[right].time < h[child].time or (h[right].time == h[child].time and h[right].order < h[child].order)
        ):
            child = right
        if time < h[child].time or (time == h[child].time and order < h[child].order):
            break
        h[hole].time, h[hole].order, h[hole].data = h[child].time, h[child].order, h[child].data
        hole = child
    h[hole].time, h[hole].order, h[hole].data = time, order, data
    if s.h_size == MAX_SORTED // 4:
        s.h_sorted = 1
        for k in range(s.h_size):
            _insert(h, k, h[k].time, h[k].order, h[k].data)


# --- Who senses a frame: the grid -----------------------------------------------------------------------------------
# The legs of all nodes lie in arrays, in the order in which they are scanned: by number in a small network, by cells in
# a large one. `place` says where that of a node is, `node_at` whose is there.


@compiled
def _lay_grid(s: Any) -> None:
    """Sorts the legs into cells by where the nodes are now. Those outside the area count as at its edge."""
    n = s.nodes
    cell = max(0.5 * s.sense * s.farthest, np.sqrt(s.width * s.height / n))
    s.g_cell, s.g_time, s.g_jumps = cell, s.now, 0.0
    s.g_columns, s.g_rows = int(s.width / cell) + 1, int(s.height / cell) + 1
    cells = s.g_columns * s.g_rows
    if len(s.g_first) != cells + 1:
        s.g_first = _ints(cells + 1)
    first = s.g_first
    first[:] = 0
    for k in range(n):
        s.near[k] = _cell_of(s, k)
        first[s.near[k] + 1] += 1
    for cell_number in range(cells):
        first[cell_number + 1] += first[cell_number]
    fill = first[:cells].copy()
    starts, xs, ys, vxs, vys, nodes = s.start.copy(), s.x.copy(), s.y.copy(), s.vx.copy(), s.vy.copy(), s.node_at.copy()
    for old in range(n):
        k = fill[s.near[old]]
        fill[s.near[old]] = k + 1
        s.start[k], s.x[k], s.y[k], s.vx[k], s.vy[k] = starts[old], xs[old], ys[old], vxs[old], vys[old]
        s.node_at[k], s.place[nodes[old]] = nodes[old], k


@compiled
def _exact(time: int) -> float:
    """A time as a float64 of which differences are exact."""
    return np.float64(time - MIDDLE)


@compiled
def _clamp(position: float, cell: float, count: int) -> int:
    return min(max(int(np.floor(position / cell)), 0), count - 1)


@compiled
def _cell_of(s: Any, k: int) -> int:
    age = _exact(s.now) - s.start[k]
    column = _clamp(s.x[k] + s.vx[k] * age, s.g_cell, s.g_columns)
    return _clamp(s.y[k] + s.vy[k] * age, s.g_cell, s.g_rows) * s.g_columns + column


@compiled
def _scan(s: Any, i: int, x: float, y: float, reach: float, first: int, after: int) -> None:
    """Adds to `near` and `far` who senses a frame of i from (x, y), among the legs from `first` to before `after`."""
    starts, xs, ys, vxs, vys = (
        s.start[first:after],
        s.x[first:after],
        s.y[first:after],
        s.vx[first:after],
        s.vy[first:after],
    )
    now, limit = _exact(s.now), s.sense * reach
    d2s, found = s.scratch, s.found
    for k in range(after - first):
        age = now - starts[k]
        dx, dy = xs[k] + vxs[k] * age - x, ys[k] + vys[k] * age - y
        d2s[k] = dx * dx + dy * dy
    hits = 0
    for k in range(after - first):  # without a branch that nobody could predict
        found[hits] = k
        hits += d2s[k] <= limit * limit
    near, distance2, near_count = s.near, s.distance2, s.near_count
    far, far_distance2, far_count = s.far, s.far_distance2, s.far_count
    nodes, node_at, plain, reach2 = s.n, s.node_at[first:after], not (s.rooms or s.surroundings), reach * reach
    for hit in range(hits):
        place = np.uint64(found[hit])
        j, d2 = node_at[place], d2s[place]
        senses = (j != i) & (nodes[np.uint64(j)].on != 0)
        if not plain:
            least = min(reach, s.rest[j].range) if s.surroundings else reach
            reach2 = least * least
            limit = s.sense * least
            senses = senses and s.rest[j].room == s.rest[i].room and d2 <= limit * limit
        near[near_count], distance2[near_count], far[far_count], far_distance2[far_count] = j, d2, j, d2
        near_count += senses & (d2 <= reach2)
        far_count += senses & (d2 > reach2)
    s.near_count, s.far_count = near_count, far_count


@compiled
def _sort_near(s: Any, count: int) -> None:
    """Puts those near in the order of their numbers."""
    near, distance2, found, scratch = s.near, s.distance2, s.found, s.scratch
    if count > RANKED:
        for k in range(count):
            found[k], scratch[k] = near[k] << POSITION_BITS | k, distance2[k]
        found[:count].sort()
        for k in range(count):
            near[k], distance2[k] = found[k] >> POSITION_BITS, scratch[found[k] & ((1 << POSITION_BITS) - 1)]
        return
    for k in range(count):
        found[k], scratch[k] = near[k], distance2[k]
    for k in range(count):
        j, rank = found[k], U0
        for other in range(count):
            rank += np.uint64(found[other] < j)
        near[rank], distance2[rank] = j, scratch[k]


@compiled
def _find_sensing(s: Any, i: int, reach: float) -> None:
    """Fills `near` with the nodes that can receive a frame of i, by number, and `far` with those that only sense it, in
    any order; and `distance2` and `far_distance2` with how far each is."""
    s.near_count, s.far_count = 0, 0
    if s.links:
        link = s.first_link[i]
        while link >= 0:
            j = s.l[link].receiver
            if s.n[j].on:
                s.near[s.near_count], s.distance2[s.near_count] = j, s.l[link].loss  # there are no distances
                s.near_count += 1
            link = s.l[link].next
        return
    k = s.place[i]
    age = _exact(s.now) - s.start[k]
    x, y = s.x[k] + s.vx[k] * age, s.y[k] + s.vy[k] * age
    if s.nodes <= s.small_network:
        _scan(s, i, x, y, reach, ZERO, s.nodes)
        return
    drift = s.fastest * (s.now - s.g_time) + s.g_jumps
    if not drift <= DRIFT * s.g_cell:
        _lay_grid(s)
        drift = 0.0
    radius = s.sense * reach + drift
    cell = s.g_cell
    left, right = _clamp(x - radius, cell, s.g_columns), _clamp(x + radius, cell, s.g_columns)
    for row in range(_clamp(y - radius, cell, s.g_rows), _clamp(y + radius, cell, s.g_rows) + 1):
        base = row * s.g_columns
        _scan(s, i, x, y, reach, s.g_first[base + left], s.g_first[base + right + 1])
    _sort_near(s, s.near_count)


# --- The air -------------------------------------------------------------------------------------------------------


@compiled
def _count(s: Any, node: int, kind: int, metric: int, amount: int) -> None:
    s.totals[kind, metric, node] += amount  # so, since at a frame's end many nodes count the same


@compiled
def _new_transmission(s: Any) -> int:
    t = s.t_free
    if t >= 0:
        s.t_free = s.t[t].next
        return t
    t = s.t_size
    if t == len(s.t):
        s.t = _longer(s.t, 2 * t)
    s.t_size = t + 1
    return t


@compiled
def _take_block(s: Any, tx: Any, count: int) -> None:
    """Where the receptions of a transmission go: side by side, in a block of 2^n, used again before a new one."""
    tx.first, tx.count, tx.block = 0, count, 0
    if count > 0:
        while 1 << tx.block < count:
            tx.block += 1
        tx.first = s.r_free[tx.block]
        if tx.first >= 0:
            s.r_free[tx.block] = s.r[tx.first].flags
        else:
            tx.first = s.r_size
            s.r_size += 1 << tx.block
            if s.r_size > len(s.r):
                s.r, s.p = _longer(s.r, 2 * s.r_size), _longer(s.p, 2 * s.r_size)


@compiled
def _draw_range(s: Any, i: int) -> float:
    if s.range_high > 0.0:
        return s.range_low + (s.range_high - s.range_low) * _uniform(s, RANGE, i)
    return s.rest[i].range


@compiled
def _transmit(
    s: Any, i: int, message: int, to: int, kind: int, size: int, packets: int, bits: int, airtime: int
) -> None:
    """Starts a transmission of node i now: who senses it, what it spoils, and when it ends."""
    node = s.n[i]
    reach = _draw_range(s, i)
    t = _new_transmission(s)
    tx = s.t[t]
    tx.sender, tx.message, tx.to, tx.kind, tx.size, tx.packets = i, message, to, kind, size, packets
    tx.start, tx.era = s.now, s.rest[i].era
    _count(s, i, kind, PACKETS, packets)
    _count(s, i, kind, BITS, bits)
    _count(s, i, kind, AIRTIME, airtime)
    if message >= 0:
        m = s.m[message]
        m.on_air = 1
        m.packets, m.bits, m.airtime = m.packets + packets, m.bits + bits, m.airtime + airtime
    if not s.ideal:
        node.transmitting = 1
        node.eifs = 0
        r = s.p[i].next
        while r != i:
            s.r[r].flags |= IS_HALF_DUPLEX
            r = s.p[r].next
    _find_sensing(s, i, reach)
    tx.receivable = s.near_count
    _take_block(s, tx, s.near_count + s.far_count)
    met = _start_everywhere(s, tx, reach)
    if not s.ideal:
        for k in range(met):
            _frame_starts(s, s.found[k])
    _push(s, s.now + airtime, TX_END, t)


@inlined
def _start_everywhere(s: Any, tx: Any, reach: float) -> int:
    """The frame starts at all nodes that sense it. Fills `found` with its receptions at those for which `_frame_starts`
    has more to do: another frame and this one may spoil each other, or the node contends; gives their number."""
    # What does not change in the loops is taken out of the state before them: the compiler cannot know that.
    receptions, present, nodes, found = s.r, s.p, s.n, s.found
    near, distance2, far, far_distance2 = s.near, s.distance2, s.far, s.far_distance2
    busy_from, surroundings, reach2, met = s.now + s.cca, s.surroundings, reach * reach, 0
    r = np.uint64(tx.first)
    for k in range(s.near_count):
        j = np.uint64(near[k])
        node, last = nodes[j], _join(present, j, r)
        receptions[r].node, receptions[r].d2, receptions[r].reach2 = j, distance2[k], reach2
        if surroundings:
            receptions[r].reach2 = _least2(s, j, reach)
        is_new = (last == j) & (node.transmitting == 0)
        receptions[r].flags = IS_RECEIVABLE + node.transmitting * IS_HALF_DUPLEX + is_new * HAS_BEGUN
        receptions[r].busy_from = is_new * busy_from
        node.receivable += 1
        found[met] = r
        met += (last != j) | (is_new & _wants(node))
        r += U1
    for k in range(s.far_count):
        j = np.uint64(far[k])
        node, last = nodes[j], _join(present, j, r)
        receptions[r].node, receptions[r].d2, receptions[r].reach2 = j, far_distance2[k], reach2
        if surroundings:
            receptions[r].reach2 = _least2(s, j, reach)
        is_new = (last == j) & (node.transmitting == 0)
        receptions[r].flags, receptions[r].busy_from = 0, is_new * busy_from
        found[met] = r
        met += ((last != j) & (node.receivable > 0)) | (is_new & _wants(node))
        r += U1
    return met


@compiled
def _wants(node: Any) -> Any:
    """Whether a node serves a message or has a backoff."""
    return (node.served & node.backoff) >= 0  # none is -1


@compiled
def _least2(s: Any, j: Any, reach: float) -> float:
    least = min(reach, s.rest[j].range)
    return least * least


@compiled
def _join(present: Any, j: Any, r: Any) -> Any:
    """Puts a reception at the end of those present at a node; gives the one before it, or j if there is none."""
    last = np.uint64(present[j].previous)
    present[r].next, present[r].previous, present[last].next, present[j].previous = j, last, r, r
    return last


@inlined
def _frame_starts(s: Any, r: int) -> None:
    """A foreign frame starts at a node that senses it (4), where another is present or an access may be scheduled."""
    reception = s.r[r]
    j: Any = np.int64(reception.node)
    node = s.n[j]
    if np.int64(s.p[r].previous) != j:
        _collide(s, j)
        if reception.flags == IS_RECEIVABLE:
            reception.flags |= HAS_BEGUN
    elif not node.transmitting:
        _settle_backoff(s, j, node)
        time = s.rest[j].access_time
        if s.rest[j].access >= 0 and time != s.now and time >= reception.busy_from:
            _cancel_access(s, j, node, reception.busy_from)
            reception.busy_from = 0


@compiled
def _power(reception: Any) -> float:
    ratio = reception.reach2 / max(reception.d2, 1.0)
    return ratio * ratio


@compiled
def _collide(s: Any, j: int) -> None:
    """Marks what is lost among the frames now present at a node, of those that can still be received."""
    receptions, present, head = s.r, s.p, np.uint64(j)
    r = np.uint64(present[head].next)
    while r != head:
        reception = receptions[r]
        if reception.flags & UNDECIDED == IS_RECEIVABLE:
            lost = not s.capture
            interference = 0.0
            other = np.uint64(present[head].next)
            while other != head and not lost:  # the sum only grows: enough is enough
                if other != r:
                    interference += _power(receptions[other])
                    lost = _power(reception) < s.threshold * interference
                other = np.uint64(present[other].next)
            if lost:
                reception.flags |= IS_COLLIDED
        r = np.uint64(present[r].next)


@compiled
def _outcome(flags: int) -> int:
    if flags & IS_HALF_DUPLEX:
        return HALF_DUPLEX
    if flags & IS_COLLIDED:
        return COLLISION
    if flags & IS_LOST:
        return RANDOM_LOSS
    return RECEIVED


@compiled
def _draw_loss(s: Any, i: int, reception: Any) -> None:
    loss = reception.d2 if s.links else s.loss
    if loss > 0.0 and reception.flags & ~HAS_BEGUN == IS_RECEIVABLE and _uniform(s, LOSS, i) < loss:
        reception.flags |= IS_LOST


@inlined
def _end_transmission(s: Any, t: int) -> None:
    """A transmission ends (7)."""
    tx = s.t[t]
    i, to, message = tx.sender, tx.to, tx.message
    cut, discarded = tx.era != s.rest[i].era, False
    if message >= 0:
        s.m[message].on_air = 0
        discarded = s.m[message].stage == DISCARDED
    s.received, s.recorded = 0, 0
    resuming = _end_where_sensed(s, tx, _end_where_receivable(s, tx))
    if resuming > 1:
        _sort_near(s, resuming)
    for k in range(resuming):
        _schedule(s, s.near[k], s.n[s.near[k]])
    if s.record:
        _record(s, tx)
    if tx.count > 0:
        s.r[tx.first].flags = s.r_free[tx.block]
        s.r_free[tx.block] = tx.first
    tx.next = s.t_free
    s.t_free = t
    if message >= 0 and to == EVERYONE:
        _fragment_sent(s, message)
    if s.ideal:
        _after_ideal(s, i, to, message, discarded)
        return
    _stop_transmitting(s, i, to, message, cut, discarded)
    _respond(s, i, to, message, discarded)


@inlined
def _stop_transmitting(s: Any, i: int, to: int, message: int, cut: bool, discarded: bool) -> None:
    """The sender no longer transmits."""
    node = s.n[i]
    node.transmitting = 0
    if message >= 0 and not discarded:
        if to == EVERYONE and _ended(s, message):
            _done(s, i, node)
        elif to == EVERYONE:
            _contend_anew(s, i, node)
        elif not cut:
            node.phase = AWAITING_ACK
            s.rest[i].wait = _push(s, s.now + s.ack_wait, ACK_WAIT_OVER, i)
    _fall_idle(s, i, node)


@inlined
def _respond(s: Any, i: int, to: int, message: int, discarded: bool) -> None:
    """What follows from a transmission where it was received."""
    if message < 0:
        if s.received > 0:
            _acknowledged(s, to, i)
    elif to == EVERYONE:
        if _ended(s, message) or discarded:
            _broadcast_ended(s, message)
    else:
        if s.received > 0:
            _push(s, s.now + s.sifs, ACK_DUE, to | i << SUBJECT_BITS)
            _arrived(s, message)
        if discarded:
            _over(s, GONE, message)


@inlined
def _end_where_receivable(s: Any, tx: Any) -> int:
    """The frame ends at the nodes in range. Chance, counting and the medium go in one loop: none is another's business.
    Fills `near` with the nodes where the medium falls idle (5) and that wait for it; gives their number."""
    receptions, present, nodes, near, now, waiting = s.r, s.p, s.n, s.near, s.now, 0
    i, to, kind = tx.sender, tx.to, tx.kind
    for r in range(np.uint64(tx.first), np.uint64(tx.first + tx.receivable)):
        reception = receptions[r]
        j: Any = np.int64(reception.node)
        if j == s.nodes:  # it has been off since
            continue
        if to in (EVERYONE, j):
            _draw_loss(s, i, reception)
            _count_reception(s, j, kind, _outcome(reception.flags))
        node, is_alone = nodes[np.uint64(j)], _leave(present, r)
        if reception.flags & HAS_BEGUN:
            outcome = _outcome(reception.flags)
            if outcome != HALF_DUPLEX:
                node.eifs = outcome != RECEIVED
            if outcome == RECEIVED and to not in (EVERYONE, j) and kind != ACK_KIND:
                node.nav = max(node.nav, s.now + s.sifs + _frame_airtime(ACK_SIZE, s.basic_kbps))
        node.receivable -= 1
        is_quiet = is_alone & (node.transmitting == 0)
        node.idle_from = max(now, node.nav)  # while another frame is present, nobody asks for it
        near[waiting] = j
        waiting += is_quiet & _wants(node)
    return waiting


@inlined
def _end_where_sensed(s: Any, tx: Any, waiting: int) -> int:
    """The frame ends at the nodes that only sensed it. Adds to `near` as above; gives the number of all."""
    receptions, present, nodes, near, now = s.r, s.p, s.n, s.near, s.now
    for r in range(np.uint64(tx.first + tx.receivable), np.uint64(tx.first + tx.count)):
        j = np.uint64(receptions[r].node)
        node, is_alone = nodes[j], _leave(present, r)
        is_quiet = is_alone & (node.transmitting == 0)
        node.eifs = 0
        node.idle_from = max(now, node.nav)  # while another frame is present, nobody asks for it
        near[waiting] = j
        waiting += is_quiet & _wants(node)
    return waiting


@compiled
def _leave(present: Any, r: Any) -> Any:
    """Takes a reception out of those present at a node; whether there was no other."""
    after, before = np.uint64(present[r].next), np.uint64(present[r].previous)
    present[before].next, present[after].previous = after, before
    return (after == before) & (after != r)


@compiled
def _count_reception(s: Any, j: int, kind: int, outcome: int) -> None:
    """Counts what became of a frame at a node that it was meant for."""
    _count(s, j, kind, _METRIC_OF[outcome], ONE)
    s.receivers[s.received] = j
    s.received += outcome == RECEIVED
    if s.record:
        s.frame_nodes[s.recorded], s.frame_outcomes[s.recorded] = j, outcome
        s.recorded += 1


_METRIC_OF = (RECEPTIONS, LOST_HALF_DUPLEX, LOST_COLLISION, LOST_RANDOM)


@compiled
def _record(s: Any, tx: Any) -> None:
    s.frame[0], s.frame[1], s.frame[2], s.frame[3] = tx.start, tx.sender, tx.to, tx.kind
    s.frame[4], s.frame[5], s.frame[6], s.frame[7] = tx.message, tx.packets, tx.size, s.recorded
    _report(s, FRAME, tx.sender, NONE)


# --- What becomes of a message -------------------------------------------------------------------------------------


@compiled
def _report(s: Any, code: int, sender: int, message: int) -> None:
    k = s.u_count
    s.u_code[k], s.u_sender[k], s.u_message[k] = code, sender, message
    s.u_count = k + 1


@compiled
def _is_hosts(message: int) -> bool:
    return message & 1 == 0


@compiled
def _over(s: Any, code: int, message: int) -> None:
    """Nothing more will happen to a message: tell the host, or forget it if it was the core's own."""
    m = s.m[message]
    m.stage, m.release = FREE, -1
    if m.reassembly >= 0:
        _free_reassembly(s, message)
    if not _is_hosts(message):
        m.next = s.m_free
        s.m_free = message
        return
    _count(s, m.node, m.kind, MESSAGES, m.packets if m.bulk else min(m.packets, 1))
    if code == NONE:
        s.over[s.over_count] = message >> 1
        s.over_count += 1
    else:
        _report(s, code, m.node, message)


@compiled
def _arrived(s: Any, message: int) -> None:
    """A unicast arrives with its last fragment, once."""
    if _last_fragment(s, message) and not s.m[message].arrived:
        s.m[message].arrived = 1
        _report(s, DELIVERED, s.m[message].node, message)


@compiled
def _fragment_sent(s: Any, message: int) -> None:
    """A fragment of a broadcast has been sent, to `receivers`."""
    if s.m[message].fragments > 1:
        _reassemble(s, message)
    s.m[message].fragment += 1


@compiled
def _ended(s: Any, message: int) -> bool:
    return s.m[message].fragment == s.m[message].fragments


@compiled
def _reassemble(s: Any, message: int) -> None:
    """Puts down who received the fragment. Both lists are by number."""
    gain = 1 << s.m[message].fragment if s.m[message].bulk else 1
    before, a = -1, s.m[message].reassembly
    for k in range(s.received):
        j = s.receivers[k]
        while a >= 0 and s.a[a].node < j:
            before, a = a, s.a[a].next
        if a < 0 or s.a[a].node != j:
            after, a = a, _new_reassembly(s)
            s.a[a].node, s.a[a].fragments, s.a[a].era, s.a[a].next = j, 0, s.rest[j].era, after
            if before < 0:
                s.m[message].reassembly = a
            else:
                s.a[before].next = a
        if s.a[a].era != s.rest[j].era:
            s.a[a].fragments, s.a[a].era = 0, s.rest[j].era  # it has been off since, and has forgotten
        s.a[a].fragments += gain
        before, a = a, s.a[a].next


@compiled
def _new_reassembly(s: Any) -> int:
    a = s.a_free
    if a >= 0:
        s.a_free = s.a[a].next
        return a
    a = s.a_size
    if a == len(s.a):
        s.a = _longer(s.a, 2 * a)
    s.a_size = a + 1
    return a


@compiled
def _free_reassembly(s: Any, message: int) -> None:
    a = s.m[message].reassembly
    while s.a[a].next >= 0:
        a = s.a[a].next
    s.a[a].next = s.a_free
    s.a_free = s.m[message].reassembly
    s.m[message].reassembly = -1


@compiled
def _find_receivers(s: Any, message: int) -> None:
    """Who has all fragments of a broadcast, or any of a bulk."""
    if s.m[message].fragments == 1:
        for k in range(s.received if s.m[message].bulk else 0):
            s.masks[k] = 1
        return
    s.received = 0
    a = s.m[message].reassembly
    while a >= 0:
        j, held = s.a[a].node, s.a[a].fragments
        if s.a[a].era == s.rest[j].era and held > 0 and (s.m[message].bulk or held == s.m[message].fragments):
            s.receivers[s.received], s.masks[s.received] = j, held
            s.received += 1
        a = s.a[a].next


@compiled
def _broadcast_ended(s: Any, message: int) -> None:
    """A broadcast has ended."""
    _find_receivers(s, message)
    if not _is_hosts(message):
        for k in range(s.received):
            j = s.receivers[k]
            if s.overhear:
                _remember_overheard(s, j, s.m[message].node)
            _pass_on(s, j, message)
    elif s.m[message].told != ALL:
        _keep_who_does_not_know(s, s.m[message])
        if s.m[message].told == SILENT and s.received == 0 and s.over_count < MAX_OVER:
            _over(s, NONE, message)
            return
    _over(s, BROADCAST, message)


# --- What nodes know: see `known.py`, which is the same in plain Python ---------------------------------------------
# `k_known` has a row for each place of each kind that is followed; `k_number` the number of the subject that has it.


@inlined
def _keep_who_does_not_know(s: Any, m: Any) -> None:
    """Of `receivers`, leaves those that do not know the subject of a message; counts the others."""
    row = _row_of(s, m.kind, m.subject)
    if row < 0:
        return
    known, skipped, receivers = s.k_known[row], s.k_skipped[m.kind], s.receivers
    once, new = s.k_once[m.kind], 0
    for k in range(s.received):
        j = receivers[k]
        is_known: Any = np.int64(known[j])
        receivers[new] = j
        new += 1 - is_known
        skipped[j] += is_known
        known[j] = is_known | once
    s.received = new


@compiled
def _row_of(s: Any, kind: int, number: int) -> int:
    """The row of a subject, empty if it has just taken its place; -1 if a later one has it."""
    row: Any = s.k_first[kind] + number % s.k_places
    if s.k_number[row] < number:
        s.k_number[row] = number
        s.k_known[row, :] = 0
    return row if s.k_number[row] == number else NONE


@compiled
def _know(s: Any, kind: int, node: int, number: int, known: int) -> None:
    row = _row_of(s, kind, number)
    if row >= 0:
        s.k_known[row, node] = known


@compiled
def _follow_kind(s: Any, kind: int, once: int, places: int) -> None:
    rows = len(s.k_number)
    s.k_once[kind], s.k_first[kind], s.k_places = once, rows, places
    s.k_number = _longer(s.k_number, rows + places)
    known = np.zeros((rows + places, s.nodes), np.uint8)
    known[:rows] = s.k_known
    s.k_known = known


@compiled
def _pass_on(s: Any, j: int, message: int) -> None:
    """Background traffic was received: a flood goes on, once."""
    origin, number = s.m[message].origin, s.m[message].number
    if not s.background_flood or not _remember_seen(s, j, origin, number):
        return
    delay = int(_uniform(s, BACKGROUND, j) * s.background_jitter)
    copy = _new_background(s, j, origin, number)
    s.m[copy].release = _push(s, s.now + delay, RELEASE, copy)


@compiled
def _new_background(s: Any, node: int, origin: int, number: int) -> int:
    message = s.m_free
    if message >= 0:
        s.m_free = s.m[message].next
    else:
        message = s.m_size
        s.m_size = message + 2
        if message >= len(s.m):
            s.m = _longer(s.m, 2 * message)
    s.m[message].node, s.m[message].to = node, EVERYONE
    s.m[message].kind, s.m[message].urgent, s.m[message].told = BACKGROUND_KIND, 0, ALL
    _cut(s, message, s.background_size, 0, 0)
    s.m[message].origin, s.m[message].number = origin, number
    return message


@compiled
def _cut(s: Any, message: int, size: int, pieces: int, last: int) -> None:
    """A new message of `size` bytes: one longer than a frame goes in fragments; or a bulk of so many pieces."""
    m = s.m[message]
    m.bulk = pieces > 0
    if m.bulk:
        m.fragments, m.full, m.last = pieces, size, last
    else:
        m.fragments, m.full = max(1, (size + s.mtu - 1) // s.mtu), s.mtu
        m.last = size - (m.fragments - 1) * s.mtu
    m.fragment, m.arrived, m.stage, m.on_air, m.reassembly = 0, 0, DELAYED, 0, -1
    m.packets, m.bits, m.airtime = 0, 0, 0


@compiled
def _take_turns(s: Any) -> None:
    """Takes the first background traffic of each node out of the heap. All nodes have the same interval, so the order
    in which it is due stays for ever: the heap need not keep it, and is small."""
    s.b_size = s.h_size
    s.b = np.zeros(s.b_size, _EVENT)
    for turn in range(s.b_size):
        event = _next_event(s)
        s.b[turn].time, s.b[turn].order, s.b[turn].data = event.time, event.order, event.data >> 4
        _pop(s)


@compiled
def _background_is_next(s: Any) -> bool:
    if s.b_size == 0 or s.h_size == 0:
        return s.b_size > 0
    b, h = s.b[s.b_next], _next_event(s)
    return b.time < h.time or (b.time == h.time and b.order < h.order)


@inlined
def _background_due(s: Any, i: int) -> None:
    if s.n[i].on:
        number = s.rest[i].made + 1
        s.rest[i].made = number
        if s.background_flood:
            _remember_seen(s, i, i, number)
        _release(s, _new_background(s, i, i, number))
    b = s.b[s.b_next]
    b.time, b.order = s.now + s.background_interval, ((BACKGROUND_DUE & 3) << CLASS_SHIFT) | s.serial
    s.serial += 1
    s.b_next = s.b_next + 1 if s.b_next + 1 < s.b_size else 0


# --- The medium access ---------------------------------------------------------------------------------------------


@compiled
def _countdown_start(s: Any, node: Any) -> int:
    return node.idle_from + s.difs + (s.ack_wait if node.eifs else 0)


@compiled
def _schedule(s: Any, i: int, node: Any) -> None:
    """Scheduling (2)."""
    _settle_backoff(s, i, node)
    rest = s.rest[i]
    if rest.access >= 0 or not node.on or node.phase != CONTENDING or _busy(s, i, node):
        return
    if node.served < 0 and node.backoff < 0:
        return
    time = max(s.now, _countdown_start(s, node) + max(node.backoff, 0) * s.slot)
    if _is_present(s, i):
        first = s.r[s.p[i].next]
        if time >= first.busy_from:
            _stop_countdown(s, i, node, first.busy_from)
            first.busy_from = 0
            return
    rest.access_time = time
    if node.served >= 0:
        rest.access = _push(s, time, ACCESS, i)
    else:
        rest.access = s.serial
        s.serial += 1


@compiled
def _settle_backoff(s: Any, i: int, node: Any) -> None:
    """A backoff that no message waits for is over when its access has passed. There is no event for that access, which
    would do nothing else; only its serial is taken, for the case that a message comes before (`_release`)."""
    if node.served < 0 and s.rest[i].access >= 0 and s.rest[i].access_time < s.now:
        s.rest[i].access, node.backoff = -1, -1


@compiled
def _is_present(s: Any, i: int) -> bool:
    """Whether a foreign frame is present at a node."""
    return s.p[i].next != i


@compiled
def _busy(s: Any, i: int, node: Any) -> bool:
    return node.transmitting or (_is_present(s, i) and s.now >= s.r[s.p[i].next].busy_from)


@compiled
def _cancel_access(s: Any, i: int, node: Any, at: int) -> None:
    """The medium is busy from `at`: the scheduled access, if there is one, is cancelled (4)."""
    _settle_backoff(s, i, node)
    if s.rest[i].access >= 0:
        s.rest[i].access = -1
        _stop_countdown(s, i, node, at)


@compiled
def _stop_countdown(s: Any, i: int, node: Any, at: int) -> None:
    if node.backoff >= 0:
        passed = max(0, at - _countdown_start(s, node)) // s.slot
        node.backoff -= min(passed, node.backoff)
    elif node.served >= 0:
        _draw_backoff(s, i, node)


@compiled
def _fall_idle(s: Any, i: int, node: Any) -> None:
    """The medium falls idle (5), if it does."""
    if not _is_present(s, i) and not node.transmitting:
        node.idle_from = max(s.now, node.nav)
        if node.served >= 0 or node.backoff >= 0:
            _schedule(s, i, node)


@compiled
def _append(s: Any, i: int, rank: int, message: int) -> None:
    s.m[message].next = -1
    if s.q_last[i, rank] >= 0:
        s.m[s.q_last[i, rank]].next = message
    else:
        s.q_first[i, rank] = message
    s.q_last[i, rank] = message


@compiled
def _release(s: Any, message: int) -> None:
    """A message is released (3)."""
    m = s.m[message]
    i = m.node
    node = s.n[i]
    if m.stage == DISCARDED:
        _discard(s, message)
        return
    if not node.on:
        _append(s, i, HELD, message)
        return
    m.stage = QUEUED
    if s.ideal:
        if m.to == EVERYONE:
            _transmit_fragment(s, i, message)
        else:
            _transmit_whole(s, i, message)
        return
    if s.rest[i].waiting >= s.queue:
        _count(s, i, m.kind, QUEUE_FULL, ONE)
        _over(s, DROPPED, message)
        return
    _append(s, i, URGENT if m.urgent else ORDINARY, message)
    s.rest[i].waiting += 1
    if node.served < 0:
        _settle_backoff(s, i, node)
        _serve_next(s, i, node)
        if s.rest[i].access >= 0:
            _push_as(s, s.rest[i].access, s.rest[i].access_time, ACCESS, i)
        if node.backoff < 0 and _busy(s, i, node):
            _draw_backoff(s, i, node)
        _schedule(s, i, node)


@compiled
def _serve_next(s: Any, i: int, node: Any) -> None:
    node.served = -1
    for rank in (URGENT, ORDINARY):
        message = s.q_first[i, rank]
        if message >= 0:
            s.q_first[i, rank] = s.m[message].next
            if s.q_first[i, rank] < 0:
                s.q_last[i, rank] = -1
            s.rest[i].waiting -= 1
            node.served = message
            return


@inlined
def _access(s: Any, i: int) -> None:
    """Channel access (6)."""
    node = s.n[i]
    s.rest[i].access, node.backoff = -1, -1
    message: Any = np.int64(node.served)
    if message >= 0:
        _transmit_fragment(s, i, message)


@compiled
def _frame_airtime(size: int, kbps: int) -> int:
    return PREAMBLE + (size * 8_000_000 + kbps - 1) // kbps


@compiled
def _last_fragment(s: Any, message: int) -> bool:
    return s.m[message].fragment + 1 >= s.m[message].fragments


@compiled
def _transmit_fragment(s: Any, i: int, message: int) -> None:
    """Transmits the fragment of a message that is due."""
    m = s.m[message]
    size = m.last if _last_fragment(s, message) else m.full
    whole = size + s.header
    airtime = _frame_airtime(whole, s.basic_kbps if m.to == EVERYONE else s.kbps)
    _transmit(s, i, message, m.to, m.kind, size, ONE, 192 + 8 * whole, airtime)


@inlined
def _transmit_whole(s: Any, i: int, message: int) -> None:
    """Transmits a unicast of the ideal MAC."""
    m = s.m[message]
    count, full, last = m.fragments, m.full, m.last
    size = (count - 1) * full + last
    airtime = (count - 1) * (_frame_airtime(full + s.header, s.kbps) + s.sifs) + _frame_airtime(last + s.header, s.kbps)
    bits = 192 * count + 8 * (size + count * s.header)
    _transmit(s, i, message, m.to, m.kind, size, count, bits, airtime)


@inlined
def _after_ideal(s: Any, i: int, to: int, message: int, discarded: bool) -> None:
    received = s.received > 0
    if to == EVERYONE:
        if _ended(s, message) or discarded:
            _broadcast_ended(s, message)
        else:
            _release(s, message)
        return
    if received:
        _report(s, DELIVERED, i, message)
    if discarded:
        _over(s, GONE, message)
    elif received:
        _over(s, FINISHED, message)
    else:
        _give_up(s, message)


@compiled
def _give_up(s: Any, message: int) -> None:
    _count(s, s.m[message].node, s.m[message].kind, GIVEN_UP, ONE)
    _over(s, UNREACHABLE, message)


@inlined
def _ack_due(s: Any, i: int, to: int) -> None:
    node = s.n[i]
    if node.transmitting or not node.on:
        return
    _cancel_access(s, i, node, s.now)
    airtime = _frame_airtime(ACK_SIZE, s.basic_kbps)
    _transmit(s, i, NONE, to, ACK_FRAME, ACK_SIZE, ONE, ACK_BITS, airtime)


@compiled
def _acknowledged(s: Any, i: int, by: int) -> None:
    """An acknowledgement has arrived at node i."""
    node = s.n[i]
    message: Any = np.int64(node.served)
    if node.phase != AWAITING_ACK or s.m[message].to != by:
        return
    rest = s.rest[i]
    rest.wait = -1
    s.m[message].fragment += 1
    if not _ended(s, message):
        rest.retry, rest.window = 0, s.cw_min
        node.phase = BETWEEN_FRAGMENTS
        rest.wait = _push(s, s.now + s.sifs, NEXT_FRAGMENT, i)
        return
    _done(s, i, node)
    _over(s, FINISHED, message)
    _schedule(s, i, node)


@inlined
def _next_fragment(s: Any, i: int) -> None:
    node = s.n[i]
    message: Any = np.int64(node.served)
    if node.transmitting:
        _timed_out(s, i)
        return
    node.phase, s.rest[i].wait = CONTENDING, -1
    _cancel_access(s, i, node, s.now)
    _transmit_fragment(s, i, message)


@compiled
def _timed_out(s: Any, i: int) -> None:
    """The wait for an acknowledgement times out, or the next fragment cannot go."""
    node, rest = s.n[i], s.rest[i]
    message: Any = np.int64(node.served)
    rest.wait = -1
    node.idle_from = max(node.idle_from, s.now)
    node.eifs = 0
    rest.retry += 1
    if rest.retry > s.retries:
        _done(s, i, node)
        _give_up(s, message)
    else:
        node.phase = CONTENDING
        rest.window = min(2 * rest.window + 1, s.cw_max)
        _draw_backoff(s, i, node)
    _schedule(s, i, node)


@compiled
def _done(s: Any, i: int, node: Any) -> None:
    """Done with the message (9); the caller sees to scheduling."""
    node.phase = CONTENDING
    _contend_anew(s, i, node)
    _serve_next(s, i, node)


@compiled
def _contend_anew(s: Any, i: int, node: Any) -> None:
    """Every transmission is followed by a backoff."""
    s.rest[i].window, s.rest[i].retry = s.cw_min, 0
    _draw_backoff(s, i, node)


# --- Nodes that are switched off and on ----------------------------------------------------------------------------


@compiled
def _switch_off(s: Any, i: int, keep_queue: bool) -> None:
    node, rest = s.n[i], s.rest[i]
    node.on = 0
    rest.era += 1
    _lose_present(s, i)
    if keep_queue:
        _cancel_access(s, i, node, s.now)
    rest.access, rest.wait, node.phase = -1, -1, CONTENDING
    if not keep_queue:
        _forget(s, i)


@inlined
def _lose_present(s: Any, i: int) -> None:
    """What was present at a node concerns nobody any more."""
    r = s.p[i].next
    while r != i:
        after = s.p[r].next
        s.r[r].node, s.r[r].flags, s.p[r].next, s.p[r].previous = s.nodes, 0, r, r
        r = after
    s.p[i].next, s.p[i].previous = i, i
    s.n[i].receivable = 0


@compiled
def _forget(s: Any, i: int) -> None:
    """All messages of a node are gone. One that has a frame on the air is over when that ends."""
    node, rest = s.n[i], s.rest[i]
    node.served, node.backoff = -1, -1
    rest.window, rest.retry, rest.waiting = s.cw_min, 0, 0
    s.q_first[i, :], s.q_last[i, :] = -1, -1
    for message in range(len(s.m)):
        m = s.m[message]
        if m.node != i or m.stage in (FREE, DISCARDED):
            continue
        if m.on_air:
            m.stage = DISCARDED
        elif _is_hosts(message):
            m.stage = DISCARDED
            m.release = _push(s, s.now, RELEASE, message)
        else:
            _over(s, GONE, message)


@compiled
def _discard(s: Any, message: int) -> None:
    if s.m[message].to == EVERYONE and s.m[message].fragment > 0:
        _broadcast_ended(s, message)
    else:
        _over(s, GONE, message)


@compiled
def _switch_on(s: Any, i: int) -> None:
    node = s.n[i]
    node.on, node.idle_from, node.nav, node.eifs = 1, s.now, 0, 0
    message = s.q_first[i, HELD]
    s.q_first[i, HELD], s.q_last[i, HELD] = -1, -1
    while message >= 0:
        s.m[message].release = _push(s, s.now, RELEASE, message)
        message = s.m[message].next
    _schedule(s, i, node)


@entry
def _set_on(address: int, node: int, on: bool, keep_queue: bool) -> None:
    s = _state_at(address)
    if not on:
        _switch_off(s, node, keep_queue)
    elif not s.n[node].on:
        _switch_on(s, node)


# --- The face ------------------------------------------------------------------------------------------------------


@compiled
def _take_commands(s: Any, count: int) -> None:
    """Takes up the host's commands, in their order."""
    for row in range(count):
        c = s.commands[row * COMMAND_WIDTH : (row + 1) * COMMAND_WIDTH]
        if c[0] == SEND:
            _accept(s, c)
        elif c[0] == WITHDRAW:
            _withdraw(s, c[2])
        elif c[0] == KNOW:
            _know(s, c[5], c[1], c[11], c[4])
        elif c[0] == BEGIN_AGAIN:
            s.k_known[s.k_first[c[5]] : s.k_first[c[5]] + s.k_places, c[1]] = 0
        else:
            _follow_kind(s, c[5], c[4], c[11])


@compiled
def _withdraw(s: Any, message: int) -> None:
    s.m[message].release, s.m[message].stage = -1, FREE


@compiled
def _accept(s: Any, c: Any) -> None:
    message = c[2]
    if message >= len(s.m):
        s.m = _longer(s.m, 2 * message)
    s.m[message].node, s.m[message].to, s.m[message].kind, s.m[message].urgent = c[1], c[3], c[5], c[7]
    s.m[message].told, s.m[message].subject = c[10], c[11]
    _cut(s, message, c[4], c[8], c[9])
    s.m[message].release = _push(s, max(c[6], s.now), RELEASE, message)


@inlined
def _work(s: Any, what: int, subject: int, serial: int) -> None:
    """One event. Access, release, wait and next fragment may have been called off: the serial tells."""
    if what == TX_END:
        _end_transmission(s, subject)
    elif what == ACCESS:
        if s.rest[subject].access == serial:
            _access(s, subject)
    elif what == RELEASE:
        if s.m[subject].release == serial:
            _release(s, subject)
    elif what == ACK_DUE:
        _ack_due(s, subject & ((1 << SUBJECT_BITS) - 1), subject >> SUBJECT_BITS)
    elif what == ACK_WAIT_OVER:
        if s.rest[subject].wait == serial:
            _timed_out(s, subject)
    elif s.rest[subject].wait == serial:
        _next_fragment(s, subject)


@entry
def _commands(address: int, count: int) -> None:
    _take_commands(_state_at(address), count)


@entry
def _advance(address: int, until: int, count: int) -> int:
    s = _state_at(address)
    s.over_count = 0
    _take_commands(s, count)
    while s.u_taken == s.u_count:
        s.u_taken, s.u_count = 0, 0
        if _background_is_next(s):
            if s.b[s.b_next].time >= until:
                return _reached(s, until)
            s.now = s.b[s.b_next].time
            _background_due(s, s.b[s.b_next].data)
            continue
        if s.h_size == 0 or _next_event(s).time >= until:
            return _reached(s, until)
        event = _next_event(s)
        s.now = event.time
        data, serial = event.data, event.order & ((1 << CLASS_SHIFT) - 1)
        _pop(s)
        _work(s, data & 15, data >> 4, serial)
    k = s.u_taken
    s.u_taken = k + 1
    s.out[0], s.out[1], s.out[2] = s.now, s.u_sender[k], s.u_message[k] >> 1
    s.out[3] = s.received if s.u_code[k] <= DELIVERED else 0
    s.out[4] = s.over_count
    if s.u_message[k] >= 0:
        m = s.m[s.u_message[k]]
        s.out[5], s.out[6], s.out[7] = m.packets, m.bits, m.airtime
    return s.u_code[k]


@compiled
def _reached(s: Any, until: int) -> int:
    s.now = until
    s.out[4] = s.over_count
    return REACHED


@entry
def _set_leg(address: int, node: int, start: int, x: float, y: float, vx: float, vy: float) -> None:
    s = _state_at(address)
    k = s.place[node]
    age = _exact(start) - s.start[k]
    jump_x, jump_y = s.x[k] + s.vx[k] * age - x, s.y[k] + s.vy[k] * age - y
    # Mostly rounding at the end of a leg. The grid must know how far anybody may have come; the sum is a safe bound.
    s.g_jumps += np.sqrt(jump_x * jump_x + jump_y * jump_y)
    s.start[k], s.x[k], s.y[k], s.vx[k], s.vy[k] = _exact(start), x, y, vx, vy
    # A little more than the speed itself: rounding must not let a node outrun the bound.
    s.fastest = max(s.fastest, np.sqrt(vx * vx + vy * vy) * 1.000001)


@entry
def _set_range(address: int, node: int, reach: float) -> None:
    s = _state_at(address)
    s.rest[node].range = reach
    if max(reach, s.range_high) > s.farthest:
        s.farthest, s.g_jumps = max(reach, s.range_high), np.inf


@entry
def _set_room(address: int, node: int, room: int) -> None:
    s = _state_at(address)
    s.rest[node].room, s.rooms = room, 1


@entry
def _set_link(address: int, sender: int, receiver: int, loss: float) -> None:
    """The links of a sender are a list, by number of the receiver."""
    s = _state_at(address)
    before, link = -1, s.first_link[sender]
    while link >= 0 and s.l[link].receiver < receiver:
        before, link = link, s.l[link].next
    is_there = link >= 0 and s.l[link].receiver == receiver
    if loss == NO_LINK:
        if is_there:
            _join_links(s, sender, before, s.l[link].next)
            s.l[link].next, s.l_free = s.l_free, link
        return
    if not is_there:
        after, link = link, _new_link(s)
        s.l[link].receiver, s.l[link].next = receiver, after
        _join_links(s, sender, before, link)
    s.l[link].loss = loss


@compiled
def _join_links(s: Any, sender: int, before: int, link: int) -> None:
    if before < 0:
        s.first_link[sender] = link
    else:
        s.l[before].next = link


@compiled
def _new_link(s: Any) -> int:
    link = s.l_free
    if link >= 0:
        s.l_free = s.l[link].next
        return link
    link = s.l_size
    if link == len(s.l):
        s.l = _longer(s.l, 2 * link)
    s.l_size = link + 1
    return link


@entry
def _overheard_at(address: int, node: int, sender: int) -> int:
    """When, or -1."""
    s = _state_at(address)
    entry = s.overheard[_place_of(s.overheard, _pair(s, node, sender))]
    return entry.value if entry.key != 0 else -1


@entry
def _buffers(address: int) -> Any:
    """What both sides share: views, not copies."""
    s = _state_at(address)
    return (
        (s.commands, s.out, s.receivers, s.masks, s.over),
        (s.frame, s.frame_nodes, s.frame_outcomes),
        (s.totals, s.k_skipped),
    )


class Core:
    """See `core.Core`."""

    _write_command: Final = struct.Struct(f"={COMMAND_WIDTH}q").pack_into
    _read_answer: Final = struct.Struct("=5q").unpack_from

    def __init__(self, settings: Settings) -> None:
        self._state = _new_state()
        self._address = _address(self._state)
        _fill(
            self._address,
            np.array([int(getattr(settings, name)) for name in _SETTING_INTS], np.int64),
            np.array([float(getattr(settings, name)) for name in _SETTING_FLOATS]),
            np.array(
                [[first_state(settings.seed, purpose, i) for i in range(settings.nodes)] for purpose in STREAMS],
                np.uint64,
            ),
            SMALL_NETWORK,
        )
        shared, frames, (self._totals, self._skipped) = _buffers(self._address)
        self._commands = memoryview(shared[0]).cast("B")
        self._out, self._receivers, self._masks, self._over = (memoryview(array) for array in shared[1:])
        self._frame, self._frame_nodes, self._frame_outcomes = (memoryview(array) for array in frames)
        self._counted = self._totals.sum(axis=2)  # when the series was last taken
        self._queued = 0
        self.now = self.sender = 0
        self.handle = -1
        self.receivers: list[int] = []
        self.over: list[int] = []
        self._subjects = subjects_followed(settings.nodes)
        self.frame: Frame | None = None
        if settings.range_high > 0:
            _set_range(self._address, 0, settings.range_high)

    def set_leg(self, node: int, start: int, x: float, y: float, vx: float, vy: float) -> None:
        _set_leg(self._address, node, start, x, y, vx, vy)

    def set_range(self, node: int, reach: float) -> None:
        _set_range(self._address, node, reach)

    def set_room(self, node: int, room: int) -> None:
        _set_room(self._address, node, room)

    def set_on(self, node: int, on: bool, keep_queue: bool) -> None:
        self._commit()
        _set_on(self._address, node, on, keep_queue)

    def set_link(self, sender: int, receiver: int, loss: float | None) -> None:
        _set_link(self._address, sender, receiver, NO_LINK if loss is None else loss)

    def _commit(self) -> None:
        _commands(self._address, self._queued)
        self._queued = 0

    def _command(self, *words: int) -> None:
        """Queues a command, whose words are those of a send: what each means, `_take_commands` says."""
        row = self._queued
        if row == COMMANDS:
            self._commit()
            row = 0
        self._queued = row + 1
        self._write_command(self._commands, row * _COMMAND_BYTES, *words)

    def send(
        self,
        node: int,
        handle: int,
        to: int,
        size: int,
        kind: int,
        release: int,
        urgent: bool,
        told: Told = Told.ALL,
        subject: int = 0,
    ) -> None:
        # As `_command`, without a call: most messages come this way.
        row, message = self._queued, 2 * handle
        if row == COMMANDS:
            self._commit()
            row = 0
        self._queued = row + 1
        at = row * _COMMAND_BYTES
        self._write_command(
            self._commands, at, SEND, node, message, to, size, kind, release, urgent, 0, 0, told, subject
        )

    def send_bulk(
        self, node: int, handle: int, pieces: int, size: int, last: int, kind: int, release: int, urgent: bool
    ) -> None:
        self._command(SEND, node, 2 * handle, EVERYONE, size, kind, release, urgent, pieces, last, ALL, 0)

    def withdraw(self, handle: int) -> None:
        self._command(WITHDRAW, 0, 2 * handle, 0, 0, 0, 0, 0, 0, 0, 0, 0)

    def follow(self, kind: int, once: bool) -> None:
        self._command(FOLLOW, 0, 0, 0, once, kind, 0, 0, 0, 0, 0, self._subjects)

    def know(self, kind: int, node: int, subject: int, known: bool) -> None:
        self._command(KNOW, node, 0, 0, known, kind, 0, 0, 0, 0, 0, subject)

    def begin_again(self, kind: int, node: int) -> None:
        self._command(BEGIN_AGAIN, node, 0, 0, 0, kind, 0, 0, 0, 0, 0, 0)

    def skipped(self, kind: int) -> list[int]:
        return cast(list[int], self._skipped[kind].tolist())

    def advance(self, until: int) -> Upcall:
        code = _advance(self._address, until, self._queued)
        self._queued = 0
        if code == _REACHED:
            self.now, over = until, self._out[4]
            self.over = self._over[:over].tolist() if over else _NOTHING
            return Upcall.REACHED
        self.now, self.sender, self.handle, count, over = self._read_answer(self._out)
        self.over = self._over[:over].tolist() if over else _NOTHING
        if code <= _DELIVERED:
            self.receivers = self._receivers[:count].tolist()
        elif code == _FRAME:
            self.frame = self._recorded()
        return _UPCALLS[code]

    @property
    def masks(self) -> list[int]:
        return self._masks[: self._out[3]].tolist()

    @property
    def spent(self) -> tuple[int, int, int]:
        return self._out[5], self._out[6], self._out[7]

    def _recorded(self) -> Frame:
        start, sender, to, kind, message, packets, size, count = self._frame
        outcomes = zip(self._frame_nodes[:count], map(Outcome, self._frame_outcomes[:count]), strict=True)
        handle = message // 2 if message >= 0 and message % 2 == 0 else -1
        return Frame(start, sender, to, kind, handle, packets, size, tuple(outcomes))

    def overheard(self, node: int, sender: int) -> int | None:
        at: int = _overheard_at(self._address, node, sender)
        return None if at < 0 else at

    def take_series(self) -> list[list[int]]:
        counted = self._totals.sum(axis=2)
        series: list[list[int]] = (counted - self._counted).tolist()
        self._counted = counted
        return series

    def totals(self) -> list[list[list[int]]]:
        return cast(list[list[list[int]]], self._totals.transpose(2, 0, 1).tolist())


_UPCALLS: Final = tuple(Upcall)
_NOTHING: Final[list[int]] = []
(_REACHED, _DELIVERED, _FRAME) = (int(code) for code in (Upcall.REACHED, Upcall.DELIVERED, Upcall.FRAME))
