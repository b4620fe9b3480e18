"""Real nodes of this repository, for tests."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.request import Request, urlopen

from typing_extensions import Self

ROOT = Path(__file__).parents[3]
PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Makes the kernel stop this process when the tests are killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Node:
    """
    A node's daemon on a loopback port; sandboxes run in gVisor.

    Each has a store, so that it stops its sandboxes when it is stopped, even if the tests were killed.
    """

    def __init__(self, home: Path, settings: dict[str, str]) -> None:
        self.home = home
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        own = {name: value for name, value in os.environ.items() if not name.startswith("SANDPIPER_")}
        engine = {name: value for name, value in os.environ.items() if name == "SANDPIPER_RUNSC"}
        env = {
            **own,
            **engine,
            "SANDPIPER_HOME": str(home),
            "SANDPIPER_PORT": str(self.port),
            "SANDPIPER_ADVERTISE_URL": self.url,
            "SANDPIPER_LOG_FORMAT": "json",
            **settings,
        }
        program = [str(ROOT / "node_modules/.bin/node"), str(ROOT / "packages/node/src/daemon/main.ts")]
        self.log = home.with_suffix(".log")
        with self.log.open("wb") as errors:
            self._process = subprocess.Popen(
                program, env=env, stdout=subprocess.PIPE, stderr=errors, text=True, preexec_fn=end_with_parent
            )
        self._wait_until_ready()

    @property
    def api_key(self) -> str:
        return (self.home / "api-key").read_text().strip()

    def sandbox_ids(self) -> list[str]:
        """The sandboxes that this node holds itself."""
        own = next(node["id"] for node in self._list("/v1/nodes") if node["isThisNode"])
        return [sandbox["id"] for sandbox in self._list("/v1/sandboxes") if sandbox["node"] in (None, own)]

    def remove(self, sandbox: str) -> None:
        urlopen(self._request("DELETE", f"/v1/sandboxes/{sandbox}")).close()

    def exec(self, sandbox: str, command: str) -> None:
        """Runs a command beside the session."""
        self._post(f"/v1/sandboxes/{sandbox}/exec", {"command": command})

    def terminate(self) -> None:
        """Stops the node, which saves its sandboxes to the store first."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait()

    def stop(self) -> None:
        """Removes the sandboxes and stops the node."""
        if self._process.poll() is not None:
            return
        for sandbox in self.sandbox_ids():
            self.remove(sandbox)
        self.terminate()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop()
        finally:
            self._process.kill()
            self._process.wait()

    def _wait_until_ready(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if '"msg":"ready"' in line:
                return
        self._process.kill()
        raise RuntimeError(f"the node did not start:\n{self.log.read_text()}")

    def _request(self, method: str, path: str, body: dict[str, str] | None = None) -> Request:
        headers = {"authorization": f"Bearer {self.api_key}", "content-type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        return Request(f"{self.url}{path}", data, headers, method=method)

    def _post(self, path: str, body: dict[str, str]) -> None:
        urlopen(self._request("POST", path, body)).close()

    def _list(self, path: str) -> list[dict[str, Any]]:
        with urlopen(self._request("GET", path)) as response:
            items: list[dict[str, Any]] = json.load(response)["items"]
            return items
