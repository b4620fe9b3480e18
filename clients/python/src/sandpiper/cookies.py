"""The cookies by which a load balancer finds a client's node again."""

from __future__ import annotations

from http.cookies import CookieError, SimpleCookie
from typing import Iterable


class CookieJar:
    """Keeps the cookies of one origin for the session's next connection."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def take(self, headers: Iterable[str]) -> None:
        """Reads the Set-Cookie headers of a handshake."""
        for header in headers:
            parsed: SimpleCookie = SimpleCookie()
            try:
                parsed.load(header)
            except CookieError:
                continue
            for name, morsel in parsed.items():
                if morsel.value == "" or morsel["max-age"] == "0":
                    self._values.pop(name, None)
                else:
                    self._values[name] = morsel.coded_value

    @property
    def header(self) -> str | None:
        return "; ".join(f"{name}={value}" for name, value in self._values.items()) or None
