"""A load balancer for tests, with affinity cookies and a network that can fail."""

from __future__ import annotations

import asyncio
import re
from types import TracebackType

from typing_extensions import Self

from node import Node

COOKIE = "BALANCER"


class Balancer:
    """Sends connections to the node that their cookie names, and others to `target`."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        self.target = 0
        self.honours_cookies = True
        self.cookies: list[str | None] = []
        """The cookie of each request."""
        self.paths: list[str] = []
        self._clients: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_cut = False

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def drop(self) -> None:
        """Breaks the clients' connections. The nodes do not notice: their side stays open and silent."""
        for writer in self._clients:
            writer.transport.abort()
        self._clients.clear()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        self.drop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._forward(reader, writer)
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        found = re.search(rb"cookie: .*?" + COOKIE.encode() + rb"=(\d)", head, re.IGNORECASE)
        self.cookies.append(found[1].decode() if found else None)
        self.paths.append(head.split(b" ")[1].decode())
        index = int(found[1]) if found and self.honours_cookies else self.target
        try:
            upstream, sink = await asyncio.open_connection("127.0.0.1", self.nodes[index].port)
        except OSError:
            writer.write(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n")
            await writer.drain()
            return
        self._clients.add(writer)
        try:
            sink.write(head)
            answer = await upstream.readuntil(b"\r\n\r\n")
            writer.write(answer[:-2] + f"Set-Cookie: {COOKIE}={index}; Path=/; HttpOnly\r\n\r\n".encode())
            down = asyncio.create_task(self._pump(upstream, writer))
            await self._pump(reader, sink)
            # After a broken connection the node's side stays open, as it does when a network drops packets.
            await down
        finally:
            self._clients.discard(writer)
            sink.transport.abort()

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65536):
                if sink.transport.is_closing():
                    # Reads on, so that the node sees a client that takes everything.
                    continue
                sink.write(data)
                await sink.drain()
            if not sink.transport.is_closing():
                sink.close()
        except OSError:
            pass
