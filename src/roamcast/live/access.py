"""Who may use the API of a node.

The rules this file owns:

* On a Unix socket (which only its owner may open) and on loopback no token is needed; any other address needs a token
  and TLS, and a node does not start without both. Tokens are compared in constant time.
* A page in a browser may use the API only if this node served it, over TCP: a request with another `Origin`, or one
  that the browser says comes from another site (`Sec-Fetch-Site`), is refused, and so is one to loopback under another
  name than loopback's (a name that an attacker has pointed here).
* A page exchanges the token for a cookie, since a browser opens streams and WebSockets without other headers. Scripts
  cannot read the cookie, and a browser sends it from no other site. It is void after a restart or with another token.
  Cookies ignore ports, so the port is in its name.
"""

import hashlib
import hmac
import secrets

from aiohttp import web

from roamcast.errors import ConfigError
from roamcast.live.places import Address


class Access:
    def __init__(self, address: Address, token: str | None, secure: bool) -> None:
        """`secure`: the API uses TLS."""
        if not address.local and (token is None or not secure):
            raise ConfigError(f"the API on {address} needs a token and TLS")
        self.address = address
        self.token = token
        self._secure = secure
        self._secret = secrets.token_bytes(32)

    def refusal(self, request: web.Request, *, public: bool) -> tuple[int, str] | None:
        """The status and the reason of a refusal, or None. What is public needs no token."""
        host = request.headers.get("Host", "")
        if not self.address.path and self.address.local and not _names_loopback(host):
            return 403, f"this address is {self.address}, whatever name you found it under"
        if not self._same_origin(request, host):
            return 403, "pages of other sites are refused"
        if public or self.token is None or self._has_token(request) or self._has_cookie(request):
            return None
        return 401, "a token is needed: Authorization: Bearer TOKEN"

    def _same_origin(self, request: web.Request, host: str) -> bool:
        origin, site = request.headers.get("Origin"), request.headers.get("Sec-Fetch-Site")
        if self.address.path:
            return origin is None and site is None
        own = f"{'https' if self._secure else 'http'}://{host}"
        return origin in (None, own) and site in (None, "same-origin", "none")

    def _has_token(self, request: web.Request) -> bool:
        return _same(request.headers.get("Authorization", ""), f"Bearer {self.token}")

    def _has_cookie(self, request: web.Request) -> bool:
        return _same(request.cookies.get(self._cookie_name, ""), self._cookie)

    # --- The cookie -------------------------------------------------------------------------------------------------

    def exchange(self, token: str, answer: web.Response) -> bool:
        """Adds the cookie to an answer if the token is right; returns whether it is."""
        if self.token is None or not _same(token, self.token):
            return self.token is None
        answer.set_cookie(
            self._cookie_name, self._cookie, httponly=True, samesite="Strict", secure=self._secure, path="/"
        )
        return True

    def forget(self, answer: web.Response) -> None:
        answer.del_cookie(self._cookie_name, httponly=True, samesite="Strict", secure=self._secure, path="/")

    @property
    def _cookie_name(self) -> str:
        return f"roamcast-{self.address.port}"

    @property
    def _cookie(self) -> str:
        return hmac.new(self._secret, (self.token or "").encode(), hashlib.sha256).hexdigest()


def _same(given: str, right: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), right.encode())


def _names_loopback(host: str) -> bool:
    """Whether a Host header names this machine's loopback, with or without a port."""
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    return Address(name.strip("[]").lower(), 0).local
