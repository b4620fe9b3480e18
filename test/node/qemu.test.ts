import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createProvider } from "@sandpiper/node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { NodeProcess } from "./node-process.ts";

const MACHINE = { memoryMib: 192, diskMib: 64, vcpuCount: 1 };
/** The first machine of its shape boots, and its image may have to be made. */
const FIRST_MS = 120_000;

let home: string;
let node: NodeProcess;
const start = () => NodeProcess.start({ home, port: 0, logLevel: "warn", defaultProvider: "qemu" });
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "sp-"));
  node = await start();
}, FIRST_MS);
afterAll(async () => {
  await node[Symbol.asyncDispose]();
  const provider = createProvider("qemu", { home: join(home, "node") });
  for (const { id } of await provider.list()) await provider.remove(id);
  await rm(home, { recursive: true });
});

describe("a node with virtual machines", () => {
  it(
    "saves, forks, sets back, pauses and resumes them, and finds them again after kill -9",
    async () => {
      const sandbox = await node.client.sandboxes.create(MACHINE);
      const counting = await sandbox.start("echo kept > file; i=0; while sleep 0.1; do i=$((i+1)); echo $i; done");
      await expect.poll(async () => (await sandbox.exec("cat file")).stdout, { timeout: 10_000 }).toBe("kept\n");
      await sandbox.checkpoint({ name: "before" });
      await sandbox.exec("echo changed > file");
      const [fork] = await sandbox.fork();
      expect((await fork?.exec("cat file; hostname"))?.stdout).toMatch(/^changed\nsandbox-/);
      await fork?.destroy();
      await sandbox.rollback("before");
      await sandbox.pause();
      await sandbox.resume();
      await node.kill();
      node = await start();
      const again = await node.client.sandboxes.connect(sandbox.id);
      expect((await again.exec("cat file")).stdout).toBe("kept\n");
      const running = (await again.processes()).filter(({ isRunning }) => isRunning).map(({ id }) => id);
      expect(running).toEqual([counting.id]);
      await again.destroy();
    },
    FIRST_MS,
  );
});
