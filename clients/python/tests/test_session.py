"""Sessions on a single node."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from node import Node
from sandpiper import (
    AccessDeniedError,
    AsyncSession,
    ConnectionLostError,
    CreationError,
    ExecutionError,
    SandboxDeletedError,
    SandboxInUseError,
    SandboxNotFoundError,
    SandpiperError,
    Session,
)


def test_runs_code_and_streams_its_output_as_it_is_written(node: Node) -> None:
    statuses: list[str] = []
    with Session.create(url=node.url, api_key=node.api_key, memory_mib=128, on_status=statuses.append) as session:
        execution = session.run("python", "import sys; print('hello'); print('oops', file=sys.stderr); sys.exit(3)")
        outputs = [(output.stream, output.data) for output in execution]
        assert sorted(outputs) == [("stderr", "oops\n"), ("stdout", "hello\n")]
        assert execution.exit_code == 3
        assert session.run("bash", "echo kept > ~/file").wait().exit_code == 0
        result = session.run("bash", "cat ~/file; echo \u00e4 >&2").wait()
        assert (result.exit_code, result.stdout, result.stderr) == (0, "kept\n", "\u00e4\n")
    assert statuses[:2] == ["SANDBOX_CREATING", "SANDBOX_RUNNING"]


def test_attaches_with_the_token_and_finds_the_sandbox_as_it_was(node: Node) -> None:
    with Session.create(url=node.url, api_key=node.api_key, memory_mib=128) as session:
        session.run("bash", "echo one > ~/file").wait()
        id, token = session.id, session.token
    with Session.attach(id, token=token, url=node.url) as again:
        assert again.run("bash", "cat ~/file").wait().stdout == "one\n"


def test_continues_an_execution_of_another_program_at_the_byte_after_its_last_output(node: Node) -> None:
    with Session.create(url=node.url, api_key=node.api_key, memory_mib=128) as session:
        execution = session.run("bash", "echo first; until [ -e ~/go ]; do sleep 0.05; done; echo second")
        first = next(iter(execution))
        assert first.data == "first\n"
        id, token = session.id, session.token
    with Session.attach(id, token=token, url=node.url, execution=execution.id, offset=execution.next) as again:
        assert again.execution is not None
        with pytest.raises(ExecutionError, match="already runs code"):
            again.run("bash", "echo no")
        node.exec(id, "touch ~/go")
        assert again.execution.wait().stdout == "second\n"


def test_is_refused_while_another_client_is_attached_and_takes_over_with_the_token(node: Node) -> None:
    with Session.create(url=node.url, api_key=node.api_key, memory_mib=128) as session:
        with pytest.raises(SandboxInUseError):
            Session.attach(session.id, token=session.token, url=node.url)
        with Session.attach(session.id, token=session.token, url=node.url, takeover=True) as other:
            assert other.run("bash", "echo mine").wait().stdout == "mine\n"
            with pytest.raises(SandpiperError) as replaced:
                session.run("bash", "echo lost").wait()
            assert replaced.value.reason == "session_taken_over"


def test_waits_while_another_client_is_attached(node: Node) -> None:
    async def scenario() -> None:
        session = await AsyncSession.create(url=node.url, api_key=node.api_key, memory_mib=128)
        waiting = asyncio.create_task(AsyncSession.attach(session.id, token=session.token, url=node.url, wait=60))
        # The first attempt has been refused once the node has seen it; the order of both does not matter.
        await session.close()
        async with await waiting as second:
            execution = await second.run("bash", "echo here")
            assert (await execution.wait()).stdout == "here\n"

    asyncio.run(scenario())


def test_reports_code_that_cannot_run_and_stays_usable(node: Node) -> None:
    with Session.create(url=node.url, api_key=node.api_key, memory_mib=128) as session:
        with pytest.raises(ExecutionError, match="cobol"):
            session.run("cobol", "DISPLAY 'HELLO'.").wait()
        assert session.run("bash", "kill -9 $$").wait().exit_code == 137
        assert session.run("bash", "echo fine").wait().stdout == "fine\n"


def test_reports_a_sandbox_that_is_deleted_during_the_session(node: Node) -> None:
    with Session.create(url=node.url, api_key=node.api_key, memory_mib=128) as session:
        execution = session.run("bash", "echo on; sleep 600")
        assert next(iter(execution)).data == "on\n"
        node.remove(session.id)
        with pytest.raises(ExecutionError, match="destroyed"):
            execution.wait()
        with pytest.raises(SandboxDeletedError):
            session.run("bash", "echo no").wait()


def test_reports_what_is_wrong_with_the_sandbox_the_credential_the_options_or_the_address(node: Node) -> None:
    with pytest.raises(SandboxNotFoundError):
        Session.attach(str(uuid.uuid4()), url=node.url, api_key=node.api_key)
    with pytest.raises(AccessDeniedError):
        Session.create(url=node.url, api_key="spk_wrong")
    with pytest.raises(CreationError, match="memoryMib"):
        Session.create(url=node.url, api_key=node.api_key, memory_mib=-1)
    with pytest.raises(ConnectionLostError, match="127.0.0.1:9"):
        Session.attach("x", url="http://127.0.0.1:9", connect_timeout=0.3)
    with pytest.raises(ValueError, match="ftp://x"):
        Session.create(url="ftp://x")
