"""Service times: computing takes a node time, for papers whose figures depend on it.

A broker reports what it computes (`Port.spend`); `[service]` says how long that takes, and on how many CPUs. The rules
this file owns:

* A CPU serves calls to brokers one after another, in the order in which they came. A call that comes while it is busy
  waits; the broker then sees the time at which it is served.
* Within a call, what follows a piece of work happens after it: messages leave, deliveries and facts are recorded as
  much later as was spent before. Timers are set for the time that the broker names.
* With `cpu = "shared"` all nodes wait for one CPU, as in a simulation of a whole network on one machine that computes
  for real.

Without `[service]`, computing takes no time, and nothing in this file runs.
"""

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, Final, Literal, cast

import msgspec
from msgspec import Meta

from roamcast.protocols.api import Broker, Handle, Node, Port, Time, Work
from roamcast.protocols.messages import Message
from roamcast.units import seconds

MAX_TIME: Final = 60.0

_CALLS: Final = ("start", "publish", "subscribe", "unsubscribe", "timer")
_FATES: Final = ("receive", "receive_bulk", "left", "dropped", "unreachable")
"""What a host asks a broker to do, and what it tells it about messages."""
_EFFECTS: Final = ("broadcast_bulk", "deliver", "record", "decide")
"""What a broker does to the world, beside sending messages, whose delay grows."""


class Service(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long nodes compute."""

    cpu: Annotated[
        Literal["node", "shared"], Meta(description="node: each node has its own CPU; shared: one for all of them")
    ] = "node"
    convert: Annotated[float, Meta(ge=0, le=MAX_TIME, description="converting an event to its digest, s")] = 0.0
    match: Annotated[
        float, Meta(ge=0, le=MAX_TIME, description="matching an event with the subscriptions of a node, s")
    ] = 0.0
    compare: Annotated[float, Meta(ge=0, le=MAX_TIME, description="comparing a digest with a summary, s")] = 0.0

    def times(self) -> dict[Work, Time]:
        return {"convert": seconds(self.convert), "match": seconds(self.match), "compare": seconds(self.compare)}


Call = Callable[..., None]
"""What a CPU serves: called with the time and its own arguments."""

Plan = Callable[[Time, Callable[[Time], None]], None]
"""Schedules a call at a time."""


class Cpu:
    def __init__(self, times: Mapping[Work, Time], plan: Plan) -> None:
        self._times = times
        self._plan = plan
        self._waiting: deque[tuple[Call, tuple[Any, ...]]] = deque()
        self._free: Time = 0
        self._now: Time = 0
        self.spent: Time = 0
        """The time spent so far in the call that is being served."""

    def spend(self, work: Work) -> None:
        self.spent += self._times[work]

    def call(self, call: Call, now: Time, *arguments: Any) -> None:  # noqa: ANN401  # as the call takes them
        """Serves a call at once if the CPU is idle, else when all earlier calls are done."""
        if self._waiting:
            self._waiting.append((call, arguments))
        elif now < self._free:
            self._waiting.append((call, arguments))
            self._plan(self._free, self._go_on)
        else:
            self._serve(now, call, arguments)

    def then(self, action: Callable[..., None], *arguments: Any) -> None:  # noqa: ANN401  # as the action takes them
        """Performs an action after the time spent so far."""
        if self.spent:
            self._plan(self._now + self.spent, lambda _: action(*arguments))
        else:
            action(*arguments)

    def _serve(self, now: Time, call: Call, arguments: tuple[Any, ...]) -> None:
        self._now, self.spent = now, 0
        call(now, *arguments)
        self._free, self.spent = now + self.spent, 0

    def _go_on(self, now: Time) -> None:
        while self._waiting and self._free <= now:
            self._serve(now, *self._waiting.popleft())
        if self._waiting:
            self._plan(self._free, self._go_on)


class Cpus:
    """The CPUs of a run."""

    def __init__(self, service: Service, nodes: int, plan: Plan) -> None:
        times = service.times()
        if service.cpu == "shared":
            self._cpus = [Cpu(times, plan)] * nodes
        else:
            self._cpus = [Cpu(times, plan) for _ in range(nodes)]

    def broker(self, node: Node, port: Port, make: Callable[[Port], Broker[Any]]) -> Broker[Any]:
        """A broker whose calls wait for the node's CPU, and whose port calls follow its work."""
        cpu = self._cpus[node]
        return cast(Broker[Any], ServedBroker(make(cast(Port, ServedPort(port, cpu))), cpu))


class ServedBroker:
    """A broker whose calls wait for a CPU; everything else is the broker's own."""

    def __init__(self, broker: Broker[Any], cpu: Cpu) -> None:
        self._broker = broker
        for name in (*_CALLS, *_FATES):
            setattr(self, name, partial(cpu.call, getattr(broker, name)))

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # as the broker has it
        return getattr(self._broker, name)


class ServedPort:
    """A port whose calls take effect when the work before them is done; those that change nothing do so at once."""

    def __init__(self, port: Port, cpu: Cpu) -> None:
        self._port = port
        self._cpu = cpu
        self.spend = cpu.spend
        for name in _EFFECTS:
            setattr(self, name, partial(cpu.then, getattr(port, name)))

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # as the port has it
        return getattr(self._port, name)

    def broadcast(self, message: Message, delay: Time = 0) -> Handle:
        return self._port.broadcast(message, delay + self._cpu.spent)

    def unicast(self, to: Node, message: Message, delay: Time = 0) -> Handle:
        return self._port.unicast(to, message, delay + self._cpu.spent)

    def withhold(self, kind: type[Message], note: str | None = None, once: bool = False) -> None:
        """Ignored: a copy waits for the CPU like anything else."""
