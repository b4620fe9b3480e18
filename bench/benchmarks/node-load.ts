import { setTimeout as sleep } from "node:timers/promises";
import autocannon from "autocannon";
import { NodeProcess } from "../../test/node/node-process.ts";
import type { Benchmark } from "../benchmark.ts";
import { residentMb } from "../processes.ts";
import { atMost, type Result } from "../report.ts";

const SUBJECT = "sandpiper-node";
const SECONDS = 60;
const CONNECTIONS = 10;
/** Allowed growth of caches between the first load and the end. */
const GROWTH_MB = 20;
const REST_MS = 2000;

export const benchmark: Benchmark = {
  title: `Load on a node for ${SECONDS} s: list sandboxes and run commands`,
  method: `autocannon with ${CONNECTIONS} connections from another process on the same machine: GET of the list, then POST of an exec of /bin/true in one sandbox. Memory is the node's resident set after a first load of ${SECONDS / 6} s and after the whole load, each after a garbage collection and a pause.`,
  order: 95,
  timeLimitMs: 400_000,
  async run(context) {
    const home = await context.workspace.makeDir("node-load");
    const node = context.workspace.own(await NodeProcess.start({ home, port: 0, logLevel: "warn" }));
    const { url, apiKey } = node.started;
    const sandbox = await node.client.sandboxes.create();
    const authorization = `Bearer ${apiKey}`;
    const list = { url: `${url}/v1/sandboxes`, headers: { authorization } };
    const exec = {
      url: `${url}/v1/sandboxes/${sandbox.id}/exec`,
      method: "POST" as const,
      headers: { authorization, "content-type": "application/json" },
      body: JSON.stringify({ argv: ["/bin/true"] }),
    };
    const results: Result[] = [];
    let errors = 0;
    let growthMb = 0;
    for (const [name, request] of Object.entries({ list, exec })) {
      const load = async (seconds: number) => {
        context.signal.throwIfAborted();
        const ran = await autocannon({ ...request, connections: CONNECTIONS, duration: seconds });
        errors += ran.errors + ran.timeouts + ran.non2xx;
        await node.collectGarbage();
        await sleep(REST_MS);
        return ran;
      };
      context.progress(`${name}: warming up`);
      await load(SECONDS / 6);
      const before = await residentMb(node.pid);
      context.progress(`${name} for ${SECONDS} s`);
      const { latency, requests } = await load(SECONDS);
      growthMb = Math.max(growthMb, (await residentMb(node.pid)) - before);
      results.push({
        name: `node-load ${name}`,
        subject: SUBJECT,
        n: requests.total,
        p50: latency.p50,
        p95: latency.p97_5,
        unit: "ms",
      });
    }
    await sandbox.destroy();
    return {
      results,
      problems: [],
      targets: [
        atMost("node-load: failed requests", errors, 0),
        atMost("node-load: memory growth of the node in MB", growthMb, GROWTH_MB),
      ],
    };
  },
};
