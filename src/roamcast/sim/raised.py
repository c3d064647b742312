"""Describes an error that a protocol raised during a run: where in its file, at which node, and in which call.

All of it is found from the traceback, so that a run without errors pays nothing for it.
"""

import struct
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from roamcast.content.event import event_name
from roamcast.content.subscription import Publication
from roamcast.errors import RoamcastError
from roamcast.protocols.api import Broker
from roamcast.protocols.facts import Fact
from roamcast.protocols.messages import Bulk, Message, kind_of
from roamcast.units import SECOND

_PACKAGE: Final = Path(__file__).parents[1]
_PROTOCOLS: Final = _PACKAGE / "protocols"


class ProtocolRaised(RoamcastError):
    """What a broker raised, in one line. The request was right and the run failed."""

    exit_code = 1


def describe_raise(problem: BaseException) -> str | None:
    """What a protocol raised: the error, its file and line, the node, the call and its event. None if no broker was
    being called: then it is not a protocol's error."""
    calls = [frame for frame in _frames(problem.__traceback__) if isinstance(frame.f_locals.get("self"), Broker)]
    if not calls:
        return None
    call = calls[0]
    broker: Broker[Any] = call.f_locals["self"]
    places = [place for place in traceback.extract_tb(problem.__traceback__) if _is_protocol(Path(place.filename))]
    where = f"{_short(places[-1].filename)}:{places[-1].lineno} in {places[-1].name}; " if places else ""
    doing = ", ".join(_doing(call.f_code.co_name, call.f_locals))
    what = _mistake(problem) or f"{type(problem).__name__}: {problem}"
    return f"{what} ({where}node {broker.node}, {doing})"


def _mistake(problem: BaseException) -> str | None:
    """A mistake that many a first protocol makes, in words; None: the error speaks for itself."""
    called = [frame for frame in _frames(problem.__traceback__) if frame.f_code.co_filename.startswith(str(_PACKAGE))]
    values = [(name, value) for frame in called for name, value in frame.f_locals.items()]
    if isinstance(problem, KeyError) and problem.args:
        missing = problem.args[0]
        if isinstance(missing, type) and issubclass(missing, Message):
            return f"the message {missing.__name__} is not among the messages of the protocol's entry: list it there"
        fact = next((value for _, value in values if isinstance(value, Fact) and value.table == missing), None)
        if fact is not None:
            return f"the fact {type(fact).__name__} is not among the facts of the protocol's entry: list it there"
    waits = [value for name, value in values if name in ("delay", "at", "now") and isinstance(value, float)]
    if waits and isinstance(problem, TypeError | struct.error):
        return f"a time of {waits[0]:g}: times are whole nanoseconds, and seconds() makes them"
    return None


def _frames(trace: TracebackType | None) -> Iterator[Any]:
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next


def _is_protocol(file: Path) -> bool:
    """Whether a protocol's author may have written it: ours, or any file outside roamcast and the libraries."""
    if file.is_relative_to(_PACKAGE):
        return file.is_relative_to(_PROTOCOLS)
    return "site-packages" not in file.parts and not file.is_relative_to(Path(traceback.__file__).parent)


def _short(file: str) -> str:
    path = Path(file)
    return path.relative_to(_PACKAGE).as_posix() if path.is_relative_to(_PACKAGE) else file


def _doing(method: str, arguments: dict[str, Any]) -> Iterator[str]:
    """The call to the broker, from the names that `Broker` gives its arguments."""
    values = list(arguments.values())
    sent = next((value for value in values if isinstance(value, Message | Bulk)), None)
    publication = next((value for value in values if isinstance(value, Publication)), None)
    event = publication.event.id if publication is not None else None if sent is None else sent.event_id
    words = method
    if sent is not None:
        words += f" of {kind_of(sent.piece if isinstance(sent, Bulk) else type(sent))!r}"
    if "sender" in arguments:
        words += f" from node {arguments['sender']}"
    yield words
    if event is not None:
        yield f"event {event_name(event)}"
    if isinstance(arguments.get("now"), int):
        yield f"at {arguments['now'] / SECOND:.6f} s"
