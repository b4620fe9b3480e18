"""Output across dropped networks and handoffs: nothing is lost, and nothing comes twice."""

from __future__ import annotations

import asyncio

from balancer import Balancer
from node import Node
from sandpiper import AsyncExecution, AsyncSession, Output

LAST = 150
#: Numbers on both streams, slowly enough to be interrupted.
COUNT = f"""
import sys, time
for number in range(1, {LAST + 1}):
    print(number, file=sys.stdout if number % 3 else sys.stderr, flush=True)
    time.sleep(0.02)
"""
#: Each stream keeps its order. The kernel does not keep the order between two pipes.
EXPECTED = {
    "stdout": "".join(f"{number}\n" for number in range(1, LAST + 1) if number % 3),
    "stderr": "".join(f"{number}\n" for number in range(1, LAST + 1) if not number % 3),
}


class Reader:
    """Collects the output of an execution, and checks that its offsets leave no gap."""

    def __init__(self, execution: AsyncExecution) -> None:
        self.texts = {"stdout": "", "stderr": ""}
        self._execution = execution
        self._end = 0

    async def past(self, line: int) -> None:
        """Reads until this line of stdout has arrived."""
        async for output in self._execution:
            self._add(output)
            if f"\n{line}\n" in self.texts["stdout"]:
                return
        raise AssertionError(f"the output ended before line {line}")

    async def rest(self) -> None:
        async for output in self._execution:
            self._add(output)

    def _add(self, output: Output) -> None:
        assert (output.offset, output.dropped) == (self._end, 0)
        self._end += len(output.data.encode())
        self.texts[output.stream] += output.data


def test_continues_after_a_dropped_network_by_a_takeover_with_its_cookie(node: Node) -> None:
    async def scenario() -> None:
        async with Balancer([node]) as balancer:
            session = await AsyncSession.create(url=balancer.url, api_key=node.api_key, memory_mib=128)
            async with session:
                execution = await session.run("python", COUNT)
                reader = Reader(execution)
                await reader.past(10)
                balancer.drop()
                await reader.past(61)
                balancer.drop()
                await reader.rest()
                assert reader.texts == EXPECTED
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
                reader = Reader(execution)
                await reader.past(10)
                # The balancer loses the affinity: the client lands on the other node, which takes the sandbox over.
                balancer.honours_cookies = False
                balancer.target = 1
                balancer.drop()
                await reader.past(40)
                assert "SANDBOX_RESTORING" in statuses
                assert second.sandbox_ids() == [session.id]
                # That node stops: it saves the sandbox, and the client returns to the first one.
                balancer.target = 0
                stopping = asyncio.create_task(asyncio.to_thread(second.terminate))
                await reader.rest()
                await stopping
                assert reader.texts == EXPECTED
                assert execution.exit_code == 0
                assert "SANDBOX_MOVED" in statuses
                assert first.sandbox_ids() == [session.id]
                assert session.rolled_back_to is None
                again = await session.run("bash", "echo still here")
                assert (await again.wait()).stdout == "still here\n"

    asyncio.run(scenario())
