"""The parameters of ODMRP: the paper's two times, its open choices as switches, and bounds."""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from roamcast.content.summary.columns import MAX_COLUMNS, Columns
from roamcast.content.summary.params import DEFAULTS, SummaryParams
from roamcast.content.text import parse_filter
from roamcast.protocols.api import Parameters

MAX_CHANNELS = 1024


class Odmrp(Parameters, frozen=True, kw_only=True):
    """Parameters of ODMRP and its extension; `refresh` and `timeout` are the paper's."""

    mode: Annotated[
        Literal["extended", "one-channel", "channels"],
        Meta(
            description="extended: groups by content; one-channel: one group for everything; channels: one for each "
            "of `channels`"
        ),
    ] = "extended"
    channels: Annotated[
        tuple[str, ...],
        Meta(max_length=MAX_CHANNELS, description="the filters of predefined channels, as text; with mode = channels"),
    ] = ()
    grouping: Annotated[
        Literal["elements", "digest", "subscription", "source"],
        Meta(
            description="extended, what makes a group: an event's type and the elements of it that known members ask "
            "for; its whole digest; the least constrained subscription that wants it; or its source"
        ),
    ] = "elements"
    request: Annotated[
        Literal["group", "event", "advertisement"],
        Meta(
            description="what a Join Request is about: its group, the event inside; extended, its event, which is "
            "inside; its group, and the event follows as data"
        ),
    ] = "group"
    forwarding: Annotated[
        Literal["flag", "summary"],
        Meta(
            description="who forwards data: nodes with the flag; or, extended, those of them below which somebody "
            "wants it"
        ),
    ] = "flag"
    upstream: Annotated[
        Literal["first", "all"],
        Meta(
            description="where Join Tables go: to the neighbour whose Join Request came first; or to every neighbour "
            "whose copy had no more hops than that"
        ),
    ] = "first"
    unknown: Annotated[
        Literal["hold", "data"],
        Meta(
            description="what becomes of an event while no member is known: it waits for one, at most for `refresh`; "
            "or it goes out as data"
        ),
    ] = "hold"
    merge: Annotated[bool, Meta(description="extended, whether forwarders merge what is wanted below them")] = False
    refresh: Annotated[
        float, Meta(ge=0.01, le=86400, description="least time between two Join Requests of a group, s")
    ] = 5.0
    timeout: Annotated[float, Meta(ge=0.01, le=86400, description="how long flags, routes and members last, s")] = 25.0
    spread: Annotated[float, Meta(ge=0, lt=1, description="how far `refresh` varies at random, in parts of it")] = 0.1
    jitter: Annotated[float, Meta(ge=0, le=60, description="longest random wait before passing on, s")] = 0.01
    gather: Annotated[float, Meta(ge=0, le=60, description="longest random wait before a Join Table, s")] = 0.02
    settle: Annotated[
        float,
        Meta(ge=0, le=60, description="how long events wait after a group's first Join Request, for routes to form, s"),
    ] = 0.25
    summary: Annotated[SummaryParams, Meta(description="extended, how subscriptions are summarised")] = DEFAULTS
    columns: Annotated[
        tuple[str, ...],
        Meta(
            max_length=MAX_COLUMNS,
            description="extended, names of elements that all nodes agree on, as a schema's",
        ),
    ] = ()
    held: Annotated[int, Meta(ge=1, le=4096, description="most events of a group that wait")] = 16
    table: Annotated[int, Meta(ge=1, description="most routes, groups or flags")] = 512
    window: Annotated[int, Meta(ge=1, description="how many events and Join Requests a node remembers")] = 4096

    def __post_init__(self) -> None:
        if self.timeout < self.refresh:
            raise ValueError(f"'timeout' ({self.timeout:g} s) must not be below 'refresh' ({self.refresh:g} s)")
        if (self.mode == "channels") != bool(self.channels):
            raise ValueError("'channels' goes with mode = \"channels\", which needs at least one")
        for text in self.channels:
            parse_filter(text)
        Columns(self.columns)
        if self.mode != "extended":
            self._check_plain()
        elif self.request == "event" and self.grouping == "digest":
            raise ValueError(
                'request = "event" cannot be combined with grouping = "digest": all events of such a group have the '
                'same digest, so that it is request = "group"'
            )

    def _check_plain(self) -> None:
        """Join Requests and Join Tables of plain ODMRP say nothing about content."""
        fields = [field for field in msgspec.structs.fields(self) if field.name in _ABOUT_CONTENT]
        changed = [field.name for field in fields if getattr(self, field.name) != field.default]
        if self.request == "event":
            changed.append("request")
        if changed:
            raise ValueError(
                f"'{changed[0]}' cannot be combined with mode = \"{self.mode}\": it is about content, which only "
                f'mode = "extended" looks at; leave it out'
            )


_ABOUT_CONTENT: Final = ("grouping", "forwarding", "merge", "summary", "columns")
