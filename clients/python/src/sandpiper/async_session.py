"""Sessions for asyncio."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, AsyncIterator, Callable

from .errors import ExecutionError
from .events import Event, Output, Rollback
from .link import Link
from .options import Address, SandboxOptions, create_path
from .result import Result

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self, Unpack

CONNECT_TIMEOUT = 5.0
RECONNECT_TIMEOUT = 60.0


class AsyncExecution:
    """Code that runs in a session. Iterate it for its output, or `wait` for all of it."""

    def __init__(self, link: Link, id: str, *, request: dict[str, str] | None, next: str = "0") -> None:
        self.id = id
        self.next = next
        """Where another program resumes after the output that has arrived."""
        self.exit_code: int | None = None
        """None until the execution has ended."""
        self.message: str | None = None
        """A time limit, a memory limit or a signal that ended the code."""
        self.error: ExecutionError | None = None
        self._link = link
        self._request = request
        # An execution that another program started has no request to repeat.
        self._is_started = request is None

    @property
    def is_done(self) -> bool:
        return self.exit_code is not None or self.error is not None

    def __aiter__(self) -> AsyncIterator[Output]:
        return self

    async def __anext__(self) -> Output:
        while not self.is_done:
            output = await self._handle(await self._link.receive())
            if output is not None:
                return output
        if self.error is not None:
            raise self.error
        raise StopAsyncIteration

    async def wait(self) -> Result:
        """Collects the output that has not been read, until the end."""
        texts: dict[str, list[str]] = {"stdout": [], "stderr": []}
        async for output in self:
            texts[output.stream].append(output.data)
        assert self.exit_code is not None
        return Result(self.exit_code, "".join(texts["stdout"]), "".join(texts["stderr"]), self.message)

    async def start(self) -> None:
        if self._request is not None:
            await self._link.send(self._request)

    async def _handle(self, event: Event) -> Output | None:
        if event.execution != self.id:
            return None
        if event.output is not None:
            self.next = event.output.next
        elif event.status == "SANDBOX_EXECUTION_RUNNING":
            self._is_started = True
        elif event.status == "SANDBOX_EXECUTION_DONE":
            self.exit_code, self.message = event.exit_code, event.message
        elif event.status == "SANDBOX_EXECUTION_ERROR":
            self._fail(event)
        elif event.status == "SANDBOX_EXECUTION_NOT_FOUND":
            # The request did not arrive, unless the node has confirmed the start.
            if self._is_started:
                self._fail(event)
            else:
                await self.start()
        return event.output

    def _fail(self, event: Event) -> None:
        self.error = ExecutionError(event.message or "the code was not run", event.reason)


class AsyncSession:
    """A client that is attached to one sandbox and runs code in it, one piece at a time."""

    def __init__(self, address: Address, on_status: Callable[[str], None] | None) -> None:
        self._execution: AsyncExecution | None = None
        self._link = Link(address, resume=self._resume, on_status=on_status)

    @classmethod
    async def create(
        cls,
        *,
        url: str | None = None,
        api_key: str | None = None,
        connect_timeout: float = CONNECT_TIMEOUT,
        reconnect_timeout: float = RECONNECT_TIMEOUT,
        on_status: Callable[[str], None] | None = None,
        **options: Unpack[SandboxOptions],
    ) -> Self:
        """Creates a sandbox and attaches to it."""
        session = cls(Address.of(url, api_key, connect_timeout, reconnect_timeout), on_status)
        await session._link.create(create_path(options))
        return session

    @classmethod
    async def attach(
        cls,
        id: str,
        *,
        token: str | None = None,
        takeover: bool = False,
        wait: float = 0.0,
        execution: str | None = None,
        offset: str = "0",
        url: str | None = None,
        api_key: str | None = None,
        connect_timeout: float = CONNECT_TIMEOUT,
        reconnect_timeout: float = RECONNECT_TIMEOUT,
        on_status: Callable[[str], None] | None = None,
    ) -> Self:
        """
        Attaches to an existing sandbox, wherever it is.

        With the sandbox's `token` the session takes over after a dropped network, and with `takeover` at once. `wait` is how
        many seconds to wait while another client is attached. `execution` and `offset`, the `id` and `next` of an execution,
        continue it: see `session.execution`.
        """
        session = cls(Address.of(url, api_key, connect_timeout, reconnect_timeout), on_status)
        if execution is not None:
            session._execution = AsyncExecution(session._link, execution, request=None, next=offset)
        await session._link.attach(id, token, takeover=takeover, wait=wait)
        return session

    @property
    def id(self) -> str:
        """The sandbox's id."""
        assert self._link.sandbox is not None
        return self._link.sandbox

    @property
    def token(self) -> str | None:
        """The sandbox's token, with which another program can attach."""
        return self._link.token

    @property
    def execution(self) -> AsyncExecution | None:
        """The execution that runs, or the last one."""
        return self._execution

    @property
    def rolled_back_to(self) -> Rollback | None:
        """Set after the sandbox's node crashed: changes after this checkpoint are lost."""
        return self._link.rolled_back_to

    async def run(self, language: str, code: str) -> AsyncExecution:
        """Starts code. Read its output before you run more."""
        await self._link.ensure_attached()
        if self._execution is not None and not self._execution.is_done:
            raise ExecutionError("the code was not run: the session already runs code", "execution_running")
        id = uuid.uuid4().hex
        request = {"language": language, "code": code, "execution": id}
        self._execution = AsyncExecution(self._link, id, request=request)
        await self._execution.start()
        return self._execution

    async def close(self) -> None:
        """Detaches. The sandbox and its code keep running."""
        await self._link.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _resume(self) -> tuple[str, str] | None:
        execution = self._execution
        return None if execution is None or execution.is_done else (execution.id, execution.next)
