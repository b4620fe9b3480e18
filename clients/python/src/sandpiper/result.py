"""How an execution ended."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    exit_code: int
    """128 + the signal's number if a signal ended the code."""
    stdout: str
    stderr: str
    message: str | None
    """A time limit, a memory limit, or the signal; None if the code ended by itself."""
