"""Keeps a client attached to a sandbox: connects, reconnects with back-off, and takes over after a dropped network."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Callable, Mapping

from .connection import TOO_BIG, Connection, Ended
from .cookies import CookieJar
from .errors import (
    ConnectionLostError,
    CreationError,
    SandboxDeletedError,
    SandboxInUseError,
    SandboxNotFoundError,
    SandpiperError,
)
from .events import Event, Rollback
from .options import Address, attach_path
from .retry import RETRYABLE_REASONS, pause_before

#: The execution that the next connection continues, and where.
Resume = Callable[[], "tuple[str, str] | None"]
OnStatus = Callable[[str], None]


class Link:
    def __init__(self, address: Address, *, resume: Resume, on_status: OnStatus | None) -> None:
        self.sandbox: str | None = None
        self.token: str | None = None
        self.rolled_back_to: Rollback | None = None
        self._address = address
        self._resume = resume
        self._on_status = on_status
        self._cookies = CookieJar()
        self._connection: Connection | None = None
        self._takeover = False
        self._error: SandpiperError | None = None

    @property
    def is_attached(self) -> bool:
        return self._connection is not None

    async def create(self, path: str) -> None:
        """Creates a sandbox. The node undoes the creation if the connection breaks before its end."""
        connection = await self._open(path, self._address.api_key)
        try:
            while True:
                event = await connection.receive()
                self._report(event)
                if event.sandbox_id is not None:
                    self.sandbox, self.token = event.sandbox_id, event.token
                elif event.status == "SANDBOX_RUNNING":
                    break
                elif event.status == "SANDBOX_CREATION_ERROR" or event.event == "error":
                    raise CreationError(event.message or "the sandbox was not created", event.reason)
        except Ended as end:
            raise CreationError(f"the connection broke during creation (code {end.code})") from None
        except BaseException:
            await connection.close()
            raise
        self._attached(connection)

    async def attach(self, sandbox: str, token: str | None, *, takeover: bool = False, wait: float = 0.0) -> None:
        """Attaches to an existing sandbox, wherever it is."""
        self.sandbox, self.token, self._takeover = sandbox, token, takeover
        await self._attach_within(self._address.connect_timeout, wait)

    async def send(self, message: Mapping[str, str]) -> None:
        """Does nothing if the connection has ended: `receive` reads what arrived before the end, and then reconnects."""
        if self._connection is not None:
            with suppress(Ended):
                await self._connection.send(message)

    async def receive(self) -> Event:
        """The next event, from one connection after another."""
        while True:
            await self.ensure_attached()
            assert self._connection is not None
            try:
                event = await self._connection.receive()
            except Ended as end:
                self._lost(end)
                continue
            self._report(event)
            if event.status == "SANDBOX_DELETED":
                raise await self._fail(SandboxDeletedError(event.message or "the sandbox was deleted", event.reason))
            if event.event == "error" and event.reason not in RETRYABLE_REASONS:
                raise await self._fail(SandpiperError(event.message or "the session has failed", event.reason))
            return event

    async def ensure_attached(self) -> None:
        """Reconnects after a lost connection."""
        if self._error is not None:
            raise self._error
        if self._connection is None:
            timeout = self._address.reconnect_timeout
            try:
                await self._attach_within(timeout, timeout)
            except SandpiperError as error:
                raise await self._fail(error)

    async def close(self) -> None:
        """Code keeps running in the sandbox."""
        await self._fail(SandpiperError("the session was closed"))

    async def _attach_within(self, timeout: float, wait: float) -> None:
        started = time.monotonic()
        attempt = 0
        while True:
            try:
                self._attached(await self._attach())
                return
            except (ConnectionLostError, SandboxInUseError) as error:
                limit = wait if isinstance(error, SandboxInUseError) else timeout
                pause = pause_before(attempt)
                if time.monotonic() + pause - started > limit:
                    raise
            attempt += 1
            await asyncio.sleep(pause)

    async def _attach(self) -> Connection:
        """One attempt. Raises `ConnectionLostError` if another one may succeed."""
        assert self.sandbox is not None
        execution, offset = self._resume() or (None, None)
        path = attach_path(self.sandbox, takeover=self._takeover, execution=execution, offset=offset)
        connection = await self._open(path, self.token or self._address.api_key)
        try:
            while True:
                event = await connection.receive()
                self._report(event)
                if event.status == "SANDBOX_RUNNING":
                    self.rolled_back_to = event.rolled_back_to or self.rolled_back_to
                    return connection
                if event.status == "SANDBOX_NOT_FOUND":
                    raise SandboxNotFoundError(event.message or f"no sandbox {self.sandbox}", event.reason)
                if event.status == "SANDBOX_IN_USE":
                    raise SandboxInUseError(event.message or f"sandbox {self.sandbox} is in use", event.reason)
                if event.event == "error":
                    kind = ConnectionLostError if event.reason in RETRYABLE_REASONS else SandpiperError
                    raise kind(event.message or "cannot attach", event.reason)
        except Ended as end:
            raise ConnectionLostError(f"the connection to {self._address.url} broke (code {end.code})") from None
        except BaseException:
            await connection.close()
            raise

    async def _open(self, path: str, credential: str | None) -> Connection:
        return await Connection.open(self._address, path, credential, self._cookies)

    def _attached(self, connection: Connection) -> None:
        self._connection = connection
        self._takeover = False

    def _lost(self, end: Ended) -> None:
        self._connection = None
        if end.code == TOO_BIG:
            self._error = SandpiperError("the node closed the connection: a message was too large", "body_too_large")
        # The node may take a while to notice that a broken connection is dead.
        self._takeover = self.token is not None and not end.is_clean

    async def _fail(self, error: SandpiperError) -> SandpiperError:
        self._error = self._error or error
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
        return self._error

    def _report(self, event: Event) -> None:
        if event.status is not None and self._on_status is not None:
            self._on_status(event.status)
