"""Sessions without asyncio: each has an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, Callable, Coroutine, Iterator, TypeVar

from .async_session import CONNECT_TIMEOUT, RECONNECT_TIMEOUT, AsyncExecution, AsyncSession
from .events import Output, Rollback
from .options import SandboxOptions
from .result import Result

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self, Unpack

T = TypeVar("T")


class _LoopThread:
    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="sandpiper-session", daemon=True)
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            # KeyboardInterrupt must not leave the coroutine running.
            future.cancel()
            raise

    def stop(self) -> None:
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Execution:
    """Code that runs in a session. Iterate it for its output, or `wait` for all of it."""

    def __init__(self, thread: _LoopThread, execution: AsyncExecution) -> None:
        self._thread = thread
        self._execution = execution

    @property
    def id(self) -> str:
        return self._execution.id

    @property
    def next(self) -> str:
        """Where another program resumes after the output that has arrived."""
        return self._execution.next

    @property
    def exit_code(self) -> int | None:
        """None until the execution has ended."""
        return self._execution.exit_code

    def __iter__(self) -> Iterator[Output]:
        while True:
            try:
                yield self._thread.call(self._execution.__anext__())
            except StopAsyncIteration:
                return

    def wait(self) -> Result:
        """Collects the output that has not been read, until the end."""
        return self._thread.call(self._execution.wait())


class Session:
    """A client that is attached to one sandbox and runs code in it, one piece at a time."""

    def __init__(self, thread: _LoopThread, session: AsyncSession) -> None:
        self._thread = thread
        self._session = session

    @classmethod
    def create(
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
        return cls._start(
            AsyncSession.create(
                url=url,
                api_key=api_key,
                connect_timeout=connect_timeout,
                reconnect_timeout=reconnect_timeout,
                on_status=on_status,
                **options,
            )
        )

    @classmethod
    def attach(
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
        """Attaches to an existing sandbox, wherever it is; see `AsyncSession.attach` for the options."""
        return cls._start(
            AsyncSession.attach(
                id,
                token=token,
                takeover=takeover,
                wait=wait,
                execution=execution,
                offset=offset,
                url=url,
                api_key=api_key,
                connect_timeout=connect_timeout,
                reconnect_timeout=reconnect_timeout,
                on_status=on_status,
            )
        )

    @property
    def id(self) -> str:
        """The sandbox's id."""
        return self._session.id

    @property
    def token(self) -> str | None:
        """The sandbox's token, with which another program can attach."""
        return self._session.token

    @property
    def execution(self) -> Execution | None:
        """The execution that runs, or the last one."""
        execution = self._session.execution
        return None if execution is None else Execution(self._thread, execution)

    @property
    def rolled_back_to(self) -> Rollback | None:
        """Set after the sandbox's node crashed: changes after this checkpoint are lost."""
        return self._session.rolled_back_to

    def run(self, language: str, code: str) -> Execution:
        """Starts code. Read its output before you run more."""
        return Execution(self._thread, self._thread.call(self._session.run(language, code)))

    def close(self) -> None:
        """Detaches. The sandbox and its code keep running."""
        try:
            self._thread.call(self._session.close())
        finally:
            self._thread.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @classmethod
    def _start(cls, work: Coroutine[Any, Any, AsyncSession]) -> Self:
        thread = _LoopThread()
        try:
            return cls(thread, thread.call(work))
        except BaseException:
            thread.stop()
            raise
