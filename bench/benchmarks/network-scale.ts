import type { Sandbox } from "@sandpiper/sdk";
import { concurrently } from "../../packages/cli/src/transfer/concurrently.ts";
import type { Benchmark } from "../benchmark.ts";
import { BenchNetwork } from "../network/bench-network.ts";
import { installClient } from "../network/contestants.ts";
import { atLeast, atMost, resultOf } from "../report.ts";

/** Concurrent boots; more would only compete for few cores. */
const CONCURRENT = 4;
const TURNS = 3;

export const benchmark: Benchmark = {
  title: "Hundreds of live sandboxes, each with a network, all connected at once",
  method: `One node boots them ${CONCURRENT} at a time. Each keeps one connection open; then each makes ${TURNS} more connections, sequentially, and measures each until the echo of one byte has arrived.`,
  order: 99,
  timeLimitMs: 1_200_000,
  setUp: ["cluster"],
  async run({ workspace, liveCount, progress, signal }) {
    const network = await BenchNetwork.start(workspace, { maxSandboxes: 0 });
    const client = network.node.client();
    const { address } = network.server;
    const rules = [{ allow: `${address}/32` }];
    const sandboxes: Sandbox[] = [];
    progress(`booting ${liveCount}`);
    await concurrently(CONCURRENT, Array(liveCount), async () => {
      signal.throwIfAborted();
      const sandbox = await client.sandboxes.create({ network: { rules } });
      sandboxes.push(sandbox);
      await installClient(sandbox, workspace);
      // Keeps a connection open.
      await sandbox.start(["bash", "-c", `exec 3<>/dev/tcp/${address}/7001 && exec sleep infinity`]);
    });
    progress(`connections of ${liveCount}`);
    const samples: number[] = [];
    let silent = 0;
    for (const sandbox of sandboxes) {
      signal.throwIfAborted();
      const { exitCode, stdout } = await sandbox.exec(["/tmp/net", "connect", address, `${TURNS}`]);
      if (exitCode !== 0) silent++;
      else
        samples.push(
          ...stdout
            .trim()
            .split("\n")
            .map((line) => Number(line) / 1000),
        );
    }
    const open = await network.openConnections();
    progress("destroying them");
    await concurrently(CONCURRENT, sandboxes, (sandbox) => sandbox.destroy());
    return {
      results: [resultOf(`network-scale connect and echo, ${liveCount} live`, "sandpiper-gvisor", samples)],
      problems: [],
      targets: [
        atMost(`network-scale: sandboxes of ${liveCount} that did not connect`, silent, 0),
        atLeast(`network-scale: connections of ${liveCount} that stayed open meanwhile`, open, liveCount),
      ],
    };
  },
};
