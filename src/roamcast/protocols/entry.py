"""What a world needs to know about a protocol to host it, and what the protocol can and cannot do."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from roamcast.content.context.rules import INTEREST, PUBLICATION_DOMAIN, RELEVANCE, SUBSCRIPTION_DOMAIN
from roamcast.content.subscription import Publication, Subscription
from roamcast.errors import RoamcastError
from roamcast.protocols.api import Broker, Parameters
from roamcast.protocols.codec import Codec
from roamcast.protocols.facts import Fact
from roamcast.protocols.messages import Message, kind_of

Understood = Literal["lifetimes", "contexts", "domains"]
"""Parts of a publication or subscription, beyond event and filter, that a protocol may understand."""
Needed = Literal["positions", "attributes"]
"""What a protocol may need to know about its node."""
Rules = Callable[[Any, Publication | Subscription], Iterator[str]]
"""Takes a protocol's parameters and a publication or subscription; gives the reasons why it cannot be used."""


class ProtocolError(RoamcastError):
    """A protocol cannot be found or used."""


@dataclass(frozen=True)
class Entry:
    """A protocol in the catalogue."""

    name: str
    summary: str
    parameters: type[Parameters]
    """A scenario's `[protocol.parameters]` is decoded into this class; every field has a default."""
    broker: type[Broker[Any]]
    messages: tuple[type[Message], ...]
    """Every class of message its brokers send."""
    facts: tuple[type[Fact], ...] = ()
    """Every class of fact its brokers record, except decisions."""
    understands: frozenset[Understood] = frozenset()
    needs: frozenset[Needed] = frozenset()
    compared: tuple[Mapping[str, Any], ...] = ({},)
    """Parameters worth comparing: those of its paper, or several values of a parameter that matters most."""
    on_devices: Mapping[str, Any] = field(default_factory=dict)
    """Parameters with another default on devices, where members may be dishonest."""
    rules: Rules | None = None
    """What it refuses although it understands it, such as a context without a region."""

    def __post_init__(self) -> None:
        if not self.messages:
            raise ProtocolError(f"protocol {self.name!r} names no messages: what it sends must be listed")
        kinds: dict[str, type[Message]] = {}
        for message in self.messages:
            if (other := kinds.setdefault(kind_of(message), message)) is not message:
                raise ProtocolError(
                    f"protocol {self.name!r}: its messages {other.__name__} and {message.__name__} have the same tag, "
                    f"{kind_of(message)!r}: give each one of its own"
                )
        if not issubclass(self.parameters, Parameters):
            raise ProtocolError(
                f"protocol {self.name!r}: its parameters, {self.parameters.__name__}, must be a subclass of "
                "roamcast.protocols.api.Parameters"
            )

    def codec(self) -> Codec:
        return Codec(self.messages)

    def refusals(self, wanted: Publication | Subscription, params: Parameters | None = None) -> Iterator[str]:
        """The reasons why this protocol does not understand or refuses a publication or subscription."""
        if wanted.lifetime is not None and "lifetimes" not in self.understands:
            yield f"{self.name} does not understand lifetimes"
        if isinstance(wanted, Publication):
            place, domain, names = wanted.relevance, wanted.subscription_domain, (RELEVANCE, SUBSCRIPTION_DOMAIN)
        else:
            place, domain, names = wanted.interest, wanted.publication_domain, (INTEREST, PUBLICATION_DOMAIN)
        if place is not None and "contexts" not in self.understands:
            yield f"{self.name} does not understand contexts, such as a {names[0]}"
        if domain is not None and "domains" not in self.understands:
            yield f"{self.name} does not understand domains, such as a {names[1]}"
        if self.rules is not None:
            yield from self.rules(self.parameters() if params is None else params, wanted)
