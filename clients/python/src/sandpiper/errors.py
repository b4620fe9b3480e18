"""The errors of this package. A command that exits non-zero is a result, not an error."""

from __future__ import annotations


class SandpiperError(Exception):
    """The base of all errors of this package; `reason` is a row of Sandpiper's docs/errors.md."""

    def __init__(self, message: str, reason: str | None = None) -> None:
        super().__init__(message)
        self.reason = reason


class AccessDeniedError(SandpiperError):
    """The node refuses the API key or the token."""


class ConnectionLostError(SandpiperError):
    """No node could be reached in time."""


class CreationError(SandpiperError):
    """The node could not create the sandbox."""


class SandboxNotFoundError(SandpiperError):
    """The sandbox does not exist, or the credential does not open it."""


class SandboxInUseError(SandpiperError):
    """Another client is attached to the sandbox."""


class SandboxDeletedError(SandpiperError):
    """The sandbox was destroyed during the session."""


class ExecutionError(SandpiperError):
    """The code was not run, or its output is lost."""
