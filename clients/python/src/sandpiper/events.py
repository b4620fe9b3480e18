"""The messages of a node."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal, Mapping, cast

Stream = Literal["stdout", "stderr"]


@dataclass(frozen=True)
class Output:
    """Text that an execution wrote to one stream."""

    stream: Stream
    data: str
    offset: int
    """The position of its first byte in the execution's output, stdout and stderr together."""
    next: str
    """Where another program resumes after this output."""
    dropped: int
    """So many bytes before it are lost, because the code wrote more than its journal holds."""


@dataclass(frozen=True)
class Rollback:
    """The sandbox's node crashed, and the sandbox restarted from a checkpoint."""

    checkpoint: str
    created_at: str
    at: str


@dataclass(frozen=True)
class Event:
    """One message. Fields that it does not have are None."""

    event: str
    status: str | None
    message: str | None
    reason: str | None
    execution: str | None
    exit_code: int | None
    sandbox_id: str | None
    token: str | None
    output: Output | None
    rolled_back_to: Rollback | None


def parse_event(text: str | bytes) -> Event:
    """Reads a message and ignores fields that this version does not know."""
    fields = cast("Mapping[str, Any]", json.loads(text))
    return Event(
        event=fields["event"],
        status=fields.get("status"),
        message=fields.get("message"),
        reason=fields.get("reason"),
        execution=fields.get("execution"),
        exit_code=fields.get("exit_code"),
        sandbox_id=fields.get("sandbox_id"),
        token=fields.get("token"),
        output=_output(fields),
        rolled_back_to=_rollback(fields.get("rolledBackTo")),
    )


def _output(fields: Mapping[str, Any]) -> Output | None:
    stream = fields["event"]
    if stream not in ("stdout", "stderr"):
        return None
    return Output(
        stream=stream,
        data=fields["data"],
        offset=fields["offset"],
        next=fields["next"],
        dropped=fields.get("dropped", 0),
    )


def _rollback(fields: Mapping[str, str] | None) -> Rollback | None:
    if fields is None:
        return None
    return Rollback(checkpoint=fields["checkpoint"], created_at=fields["createdAt"], at=fields["at"])
