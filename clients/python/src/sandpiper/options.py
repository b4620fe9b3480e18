"""What a session needs to reach a node and to create a sandbox."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TypedDict
from urllib.parse import quote, urlencode, urlsplit

DEFAULT_URL = "http://127.0.0.1:4747"


class SandboxOptions(TypedDict, total=False):
    """The query of `/create`."""

    name: str
    provider: str
    image: str
    memory_mib: int
    vcpu_count: float
    disk_mib: int
    max_processes: int
    language: str
    cwd: str
    user: str
    timeout_ms: int
    ttl_ms: int
    idle_timeout_ms: int


@dataclass(frozen=True)
class Address:
    """A node, or the load balancer in front of several."""

    url: str
    api_key: str | None
    connect_timeout: float
    reconnect_timeout: float

    @staticmethod
    def of(url: str | None, api_key: str | None, connect_timeout: float, reconnect_timeout: float) -> Address:
        """Completes the options from SANDPIPER_URL and SANDPIPER_API_KEY."""
        chosen = (url or os.environ.get("SANDPIPER_URL") or DEFAULT_URL).rstrip("/")
        if urlsplit(chosen).scheme not in ("http", "https"):
            raise ValueError(f"url {chosen!r} is not an http:// or https:// URL")
        key = api_key or os.environ.get("SANDPIPER_API_KEY")
        return Address(chosen, key, connect_timeout, reconnect_timeout)

    @property
    def socket_url(self) -> str:
        return "ws" + self.url.removeprefix("http")


def create_path(options: SandboxOptions) -> str:
    query = {_camel_case(name): str(value) for name, value in options.items()}
    return f"/create?{urlencode(query)}" if query else "/create"


def attach_path(sandbox: str, *, takeover: bool, execution: str | None, offset: str | None) -> str:
    query: dict[str, str] = {}
    if execution is not None:
        query |= {"execution": execution, "offset": offset or "0"}
    if takeover:
        query["takeover"] = "true"
    path = f"/attach/{quote(sandbox, safe='')}"
    return f"{path}?{urlencode(query)}" if query else path


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)
