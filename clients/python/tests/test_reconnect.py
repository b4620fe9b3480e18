"""Output across dropped networks and handoffs: nothing is lost, and nothing comes twice."""

from __future__ import annotations

import asyncio

from balancer import Balancer
from node import Node
from sandpiper import AsyncExecution, AsyncSession

LAST = 150
#: Numbers on both streams, slowly enough to be interrupted.
COUNT = f"""
import sys, time
for number in range(1, {LAST + 1}):
    print(number, file=sys.stdout if number % 3 else sys.stderr, flush=True)
    time.sleep(0.02)
"""
NUMBERS = "".join(f"{number}\n" for number in range(1, LAST + 1))


async def read_past(execution: AsyncExecution, line: int) -> str:
    """Reads output until the number of this line has arrived."""
    text = ""
    async for output in execution:
        text += output.data
        if f"{line}\n" in text:
            return text
    raise AssertionError(f"the output ended before line {line}:\n{text}")


async def rest(execution: AsyncExecution) -> str:
    return "".join([output.data async for output in execution])


def test_continues_after_a_dropped_network_by_a_takeover_with_its_cookie(node: Node) -> None:
    async def scenario() -> None:
        async with Balancer([node]) as balancer:
            session = await AsyncSession.create(url=balancer.url, api_key=node.api_key, memory_mib=128)
            async with session:
                execution = await session.run("python", COUNT)
                text = await read_past(execution, 10)
                balancer.drop()
                text += await read_past(execution, 60)
                balancer.drop()
                text += await rest(execution)
                assert text == NUMBERS
                assert execution.exit_code == 0
            assert balancer.cookies == [None, "0", "0"]
            assert all("takeover=true" in path for path in balancer.paths[1:])

    asyncio.run(scenario())


def test_starts_code_once_if_the_network_drops_before_the_node_confirms_it(node: Node) -> None:
    async def scenario() -> None:
        async with Balancer([node]) as balancer:
            session = await AsyncSession.create(url=balancer.url, api_key=node.api_key, memory_mib=128)
            async with session:
                for _ in range(3):
                    execution = await session.run("bash", "echo ran | tee -a ~/runs")
                    balancer.drop()
                    assert (await execution.wait()).stdout == "ran\n"
                runs = await session.run("bash", "cat ~/runs")
                assert (await runs.wait()).stdout == "ran\n" * 3

    asyncio.run(scenario())


def test_follows_the_sandbox_to_another_node_while_output_flows(cluster: list[Node]) -> None:
    async def scenario() -> None:
        first, second = cluster
        statuses: list[str] = []
        async with Balancer(cluster) as balancer:
            session = await AsyncSession.create(
                url=balancer.url, api_key=first.api_key, memory_mib=128, on_status=statuses.append
            )
            async with session:
                execution = await session.run("python", COUNT)
                text = await read_past(execution, 10)
                # The balancer loses the affinity: the client lands on the other node, which takes the sandbox over.
                balancer.honours_cookies = False
                balancer.target = 1
                balancer.drop()
                text += await read_past(execution, 40)
                assert "SANDBOX_RESTORING" in statuses
                assert second.sandbox_ids() == [session.id]
                # That node stops: it saves the sandbox, and the client returns to the first one.
                balancer.target = 0
                stopping = asyncio.create_task(asyncio.to_thread(second.terminate))
                text += await rest(execution)
                await stopping
                assert text == NUMBERS
                assert execution.exit_code == 0
                assert "SANDBOX_MOVED" in statuses
                assert first.sandbox_ids() == [session.id]
                assert session.rolled_back_to is None
                again = await session.run("bash", "echo still here")
                assert (await again.wait()).stdout == "still here\n"

    asyncio.run(scenario())
