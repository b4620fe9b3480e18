"""Run code in a Sandpiper sandbox, with output that survives reconnects and handoffs."""

from .async_session import AsyncExecution, AsyncSession
from .errors import (
    AccessDeniedError,
    ConnectionLostError,
    CreationError,
    ExecutionError,
    SandboxDeletedError,
    SandboxInUseError,
    SandboxNotFoundError,
    SandpiperError,
)
from .events import Output, Rollback, Stream
from .options import SandboxOptions
from .result import Result
from .session import Execution, Session

__all__ = [
    "AccessDeniedError",
    "AsyncExecution",
    "AsyncSession",
    "ConnectionLostError",
    "CreationError",
    "Execution",
    "ExecutionError",
    "Output",
    "Result",
    "Rollback",
    "SandboxDeletedError",
    "SandboxInUseError",
    "SandboxNotFoundError",
    "SandboxOptions",
    "SandpiperError",
    "Session",
    "Stream",
]
