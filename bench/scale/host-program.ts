import { readFile } from "node:fs/promises";
import { createManager } from "@sandpiper/node";
import { concurrently } from "../../packages/cli/src/transfer/concurrently.ts";
import { timeTrue } from "../timed-run.ts";
import type { HostAnswer, HostRequest } from "./host-message.ts";

/** Concurrent boots; more would only compete for few cores. */
const CONCURRENT_BOOTS = 4;
const TRUE_PATH = "/tmp/true";

const [home = "", truePath = ""] = process.argv.slice(2);
const program = await readFile(truePath);
const manager = createManager({ provider: "gvisor", home, maxSandboxes: 0 });

process.on("message", async (request: HostRequest) => {
  let samples: number[] = [];
  let error: string | undefined;
  try {
    samples = await answer(request);
  } catch (thrown) {
    error = thrown instanceof Error ? thrown.message : String(thrown);
  }
  process.send?.({ ids: manager.list(), samples, error } satisfies HostAnswer);
});
process.on("disconnect", () => process.exit(1));

async function answer(request: HostRequest): Promise<number[]> {
  switch (request.kind) {
    case "create":
      return create(request.count);
    case "exec":
      return exec(request.rounds);
    case "destroy":
      await manager.destroyAll();
      return [];
    case "reconcile":
      await manager.reconcile({ orphans: "destroy" });
      return [];
  }
}

async function create(count: number): Promise<number[]> {
  const samples: number[] = [];
  await concurrently(CONCURRENT_BOOTS, Array(count), async () => {
    const startedAt = performance.now();
    const sandbox = await manager.create();
    samples.push(performance.now() - startedAt);
    await sandbox.files.write(TRUE_PATH, program, { mode: 0o755 });
  });
  return samples;
}

async function exec(rounds: number): Promise<number[]> {
  const samples: number[] = [];
  for (let round = 0; round < rounds; round++) {
    for (const id of manager.list()) {
      const sandbox = { id, exec: (argv: string[]) => manager.execute(id, argv) };
      samples.push(...(await timeTrue(sandbox, TRUE_PATH)));
    }
  }
  return samples;
}
