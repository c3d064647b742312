"""The requests that the API knows, and their description in OpenAPI 3.1, which a node has at `/openapi.json`.

One table: `control.py` makes its routes from it, and the description takes the shapes of requests and answers from the
structs that parse and encode them. So there is no request that is not described.
"""

from collections.abc import Iterator
from importlib.metadata import version
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec

from roamcast.content.event import INT_MAX, MAX_NODE, Scalar
from roamcast.live.control_messages import (
    JSON,
    MSGPACK,
    EventForm,
    Polled,
    PollRequest,
    ShownMessage,
    ShownName,
    SubscribeRequest,
)

_WHOLE: Final = {"type": "integer", "minimum": 0}
_PATH_PARAMETERS: Final = {"id": _WHOLE | {"maximum": INT_MAX}, "node": _WHOLE | {"maximum": MAX_NODE}}
_COMMON: Final = (400, 401, 403, 503)
"""Every request may be refused with these."""
_MEANINGS: Final = {
    400: "The request is wrong.",
    401: "The token is missing or wrong.",
    403: "The request comes from a page of another site, or names this address by another name.",
    404: "There is no such thing here.",
    408: "The request's body did not come in time.",
    409: "The value comes from an option of the node.",
    413: "The request is too long.",
    415: "The body must be JSON or MessagePack.",
    426: "A WebSocket is expected here.",
    503: "Too much at once, or the disk failed: try again later.",
}
_WITH_BODY: Final = (408, 413, 415)

_Coordinate = Annotated[float, msgspec.Meta(description="In metres")]
_Pair = Annotated[list[_Coordinate], msgspec.Meta(min_length=2, max_length=2, description="[x, y]")]


class Problem(msgspec.Struct):
    error: str


class Coordinates(msgspec.Struct, forbid_unknown_fields=True):
    x: _Coordinate
    y: _Coordinate


class Here(msgspec.Struct):
    here: _Pair | None


class NodeAttributes(msgspec.Struct):
    attributes: dict[str, Scalar]


class HeardNode(msgspec.Struct):
    node: int
    heard_s_ago: float


class OtherProtocol(msgspec.Struct):
    node: int
    protocol: str
    heard_s_ago: float


class Health(msgspec.Struct):
    healthy: bool
    other_protocols: list[OtherProtocol]


class SubscriptionStatus(msgspec.Struct):
    id: int
    filter: str
    durable: bool
    listening: bool
    waiting: int
    missed: int


class Subscriptions(msgspec.Struct):
    subscriptions: list[SubscriptionStatus]


class Status(msgspec.Struct):
    """Everything that a node knows; it may have more fields than these."""

    node: int
    protocol: str
    parameters: dict[str, Any]
    now_s: float
    key: str | None
    api: str
    here: _Pair | None
    attributes: dict[str, Scalar]
    neighbours: list[HeardNode]
    other_protocols: list[OtherProtocol]
    tables: dict[str, int]
    subscriptions: list[SubscriptionStatus]
    counters: dict[str, dict[str, Any]]


class Unsubscribed(msgspec.Struct):
    unsubscribed: int


class Forgotten(msgspec.Struct):
    forgotten: int


class LogIn(msgspec.Struct, forbid_unknown_fields=True):
    token: str


class Open(msgspec.Struct):
    open: bool


class Operation(NamedTuple):
    """One request."""

    name: str
    method: Literal["GET", "POST", "PUT", "DELETE"]
    path: str
    summary: str
    answer: Any
    """The type of the answer; or its media type, if it is not JSON; None: it opens a WebSocket."""
    query: Any = None
    body: Any = None
    status: int = 200
    problems: tuple[int, ...] = ()
    tcp: bool = False
    """Only over TCP: it is for pages."""


OPERATIONS: Final = (
    Operation("status", "GET", "/status", "What the node knows", Status),
    Operation("health", "GET", "/health", "Whether the node works", Health),
    Operation("metrics", "GET", "/metrics", "Counters, for Prometheus", "text/plain"),
    Operation("openapi", "GET", "/openapi.json", "This description", dict[str, Any]),
    Operation("publish", "POST", "/publish", "Publish an event", ShownName, body=EventForm, status=201),
    Operation("publish_many", "GET", "/publish", "Publish many events over a WebSocket", None),
    Operation("subscribe", "GET", "/subscribe", "Subscribe over a WebSocket", None),
    Operation(
        "events", "GET", "/events", "Subscribe: a stream of server-sent events", "text/event-stream", SubscribeRequest
    ),
    Operation("poll", "GET", "/poll", "Take the next events of a durable subscription", Polled, PollRequest),
    Operation("subscriptions", "GET", "/subscriptions", "The subscriptions of this node", Subscriptions),
    Operation(
        "unsubscribe",
        "DELETE",
        "/subscriptions/{id}",
        "End a subscription, durable or not",
        Unsubscribed,
        problems=(404,),
    ),
    Operation(
        "forget_author",
        "DELETE",
        "/authors/{node}",
        "Forget whom this node trusts under a number",
        Forgotten,
        problems=(404,),
    ),
    Operation(
        "set_here",
        "PUT",
        "/here",
        "Set the node's position, in metres; null: unknown",
        Here,
        body=_Pair | Coordinates | None,
        problems=(409,),
    ),
    Operation(
        "set_attributes",
        "PUT",
        "/attributes",
        "Set the node's attributes",
        NodeAttributes,
        body=Annotated[dict[str, Scalar], msgspec.Meta(extra_json_schema={"propertyNames": {"minLength": 1}})],
        problems=(409,),
    ),
    Operation("log_in", "POST", "/session", "Exchange the token for a cookie", Open, body=LogIn, tcp=True),
    Operation("log_out", "DELETE", "/session", "Remove the cookie", Open, tcp=True),
)


def description(tcp: bool) -> dict[str, Any]:
    """The description of the API in OpenAPI 3.1; `tcp`: with what there is over TCP only."""
    known = [operation for operation in OPERATIONS if tcp or not operation.tcp]
    shapes = [shape for each in known for shape in (each.answer, each.query, each.body) if _is_shape(shape)]
    found, components = msgspec.json.schema_components(
        [*shapes, ShownMessage, Problem], ref_template="#/components/schemas/{name}"
    )
    schemas = dict(zip(map(repr, shapes), found, strict=False))
    paths: dict[str, dict[str, Any]] = {}
    for operation in known:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation, schemas, components)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "roamcast node",
            "version": version("roamcast"),
            "description": "Publish and subscribe by content. docs/live.md has more about each request.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{}, {"token": []}, {"cookie": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "roamcast-PORT"},
            },
        },
    }


def _is_shape(answer: Any) -> bool:  # noqa: ANN401
    return answer is not None and not isinstance(answer, str)


def _described(operation: Operation, schemas: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    problems = sorted({*_COMMON, *operation.problems, *(_WITH_BODY if operation.body is not None else ())})
    told: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "responses": {
            str(operation.status if operation.answer is not None else 101): _answer(operation, schemas),
            **{str(status): _problem(_MEANINGS[status]) for status in problems},
        },
    }
    if operation.answer is None:
        told["responses"]["426"] = _problem(_MEANINGS[426])
    parameters = [*_in_path(operation.path), *(_in_query(components, operation.query) if operation.query else ())]
    if parameters:
        told["parameters"] = parameters
    if operation.body is not None:
        schema = schemas[repr(operation.body)]
        told["requestBody"] = {"required": True, "content": {kind: {"schema": schema} for kind in (JSON, MSGPACK)}}
    return told


def _answer(operation: Operation, schemas: dict[str, Any]) -> dict[str, Any]:
    if operation.answer is None:
        return {"description": "The WebSocket is open."}
    if not isinstance(operation.answer, str):
        return {"description": "Done.", "content": {JSON: {"schema": schemas[repr(operation.answer)]}}}
    schema: dict[str, Any] = {"type": "string"}
    if operation.answer == "text/event-stream":
        schema["description"] = "The data of each event is a ShownMessage."
    return {"description": "Done.", "content": {operation.answer: {"schema": schema}}}


def _problem(words: str) -> dict[str, Any]:
    return {"description": words, "content": {JSON: {"schema": {"$ref": "#/components/schemas/Problem"}}}}


def _in_path(path: str) -> Iterator[dict[str, Any]]:
    for name, schema in _PATH_PARAMETERS.items():
        if f"{{{name}}}" in path:
            yield {"name": name, "in": "path", "required": True, "schema": schema}


def _in_query(components: dict[str, Any], query: type[msgspec.Struct]) -> Iterator[dict[str, Any]]:
    shape = components.pop(query.__name__)
    for name, schema in shape["properties"].items():
        yield {"name": name, "in": "query", "required": name in shape.get("required", ()), "schema": schema}
