"""One WebSocket of a session."""

from __future__ import annotations

import json
from typing import Mapping

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidMessage, InvalidStatus

from .cookies import CookieJar
from .errors import AccessDeniedError, ConnectionLostError, SandboxNotFoundError, SandpiperError
from .events import Event, parse_event
from .options import Address

NORMAL, GOING_AWAY, POLICY, TOO_BIG, MOVED = 1000, 1001, 1008, 1009, 1012
#: The node ended the session itself, so that no takeover is necessary to attach again.
CLEAN_CODES = (NORMAL, GOING_AWAY, POLICY, MOVED)
#: A request has all code in one message, and the node closes a connection on which more arrives.
MAX_MESSAGE_BYTES = 16 * 1024 * 1024
OPEN_TIMEOUT = 10.0
CLOSE_TIMEOUT = 2.0
PING_INTERVAL = 10.0


class Ended(Exception):
    """The connection is closed; `code` is None if it broke."""

    def __init__(self, code: int | None) -> None:
        super().__init__(code)
        self.code = code

    @property
    def is_clean(self) -> bool:
        return self.code in CLEAN_CODES


class Connection:
    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    @staticmethod
    async def open(address: Address, path: str, credential: str | None, cookies: CookieJar) -> Connection:
        """Raises `ConnectionLostError` if another attempt may succeed."""
        headers: dict[str, str] = {}
        if credential is not None:
            headers["Authorization"] = f"Bearer {credential}"
        if cookies.header is not None:
            headers["Cookie"] = cookies.header
        try:
            socket = await connect(
                f"{address.socket_url}{path}",
                additional_headers=headers,
                compression=None,
                max_size=None,
                open_timeout=OPEN_TIMEOUT,
                close_timeout=CLOSE_TIMEOUT,
                ping_interval=PING_INTERVAL,
                ping_timeout=PING_INTERVAL,
            )
        except InvalidStatus as refusal:
            raise _refusal(refusal) from refusal
        except (OSError, TimeoutError, EOFError, InvalidMessage, InvalidHandshake) as error:
            raise ConnectionLostError(f"cannot reach {address.url}: {error or type(error).__name__}") from error
        if socket.response is not None:
            cookies.take(socket.response.headers.get_all("Set-Cookie"))
        return Connection(socket)

    async def receive(self) -> Event:
        try:
            return parse_event(await self._socket.recv())
        except ConnectionClosed as closed:
            raise Ended(closed.rcvd.code if closed.rcvd is not None else None) from None

    async def send(self, message: Mapping[str, str]) -> None:
        try:
            await self._socket.send(json.dumps(message))
        except ConnectionClosed as closed:
            raise Ended(closed.rcvd.code if closed.rcvd is not None else None) from None

    async def close(self) -> None:
        await self._socket.close()


def _refusal(refusal: InvalidStatus) -> SandpiperError:
    """The node's answer to a refused handshake."""
    response = refusal.response
    try:
        body = json.loads(response.body or b"{}")
        error = body.get("error", body)
        message, reason = error.get("message"), error.get("reason")
    except (ValueError, AttributeError):
        message, reason = None, None
    text = message or f"the server answered {response.status_code}"
    if response.status_code in (401, 403):
        return AccessDeniedError(text, reason)
    if response.status_code == 404:
        return SandboxNotFoundError(text, reason)
    if response.status_code == 429 or response.status_code >= 500:
        return ConnectionLostError(text, reason)
    return SandpiperError(text, reason)
