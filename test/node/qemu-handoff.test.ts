import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, type Process, type Sandbox } from "@sandpiper/sdk";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freePort } from "../../packages/node/src/store/testing/free-port.ts";
import { crashMachine } from "../../packages/providers/src/host/testing/machine-traces.ts";
import { NodeProcess } from "./node-process.ts";
import { MACHINE, QemuHome } from "./qemu-home.ts";

/** The first machine of its shape boots. */
const FIRST_MS = 120_000;
const PATIENCE = { timeout: 30_000, interval: 100 };
const COUNT = "i=0; while [ ! -e /tmp/enough ]; do i=$((i+1)); echo $i; sleep 0.02; done; echo total $i";

let homes: readonly QemuHome[];
let store: string;
beforeAll(async () => {
  homes = await Promise.all([QemuHome.make(), QemuHome.make()]);
  store = mkdtempSync(join(tmpdir(), "sp-store-"));
});
afterAll(async () => {
  for (const home of homes) await home[Symbol.asyncDispose]();
  rmSync(store, { recursive: true, force: true });
});

/** Two nodes of a cluster, and a client of each that knows the same key. */
async function startCluster({ leaseMs }: { readonly leaseMs: number }) {
  const clusterSecret = "a secret of a test, long enough";
  const settings = { store: `file://${store}`, clusterSecret, leaseMs, maxSkewMs: 0, drainMs: 60_000 };
  await using undo = new AsyncDisposableStack();
  const nodes: NodeProcess[] = [];
  for (const home of homes) {
    nodes.push(undo.use(await NodeProcess.start(home.config({ ...settings, port: await freePort() }))));
  }
  const [first, second] = nodes as [NodeProcess, NodeProcess];
  const { apiKey } = first.started;
  const there = undo.adopt(new Client({ url: second.started.url, apiKey }), (client) => client.close());
  const owned = undo.move();
  const bring = async ({ id }: Pick<Sandbox, "id">) => {
    const url = `${second.started.url}/v1/sandboxes/${id}/handoff`;
    const response = await fetch(url, { method: "POST", headers: { authorization: `Bearer ${apiKey}` } });
    expect(response.status, await response.clone().text()).toBe(200);
  };
  return { first, second, here: first.client, there, bring, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** What a process has written so far; the same handle reads on whatever happens to its sandbox. */
function collect({ stdout }: Process) {
  let text = "";
  const ended = (async () => {
    for await (const bytes of stdout) text += Buffer.from(bytes).toString();
    return text;
  })();
  ended.catch(() => {});
  return { ended, lines: () => text.split("\n").length, text: () => text };
}

/** What a program that was not disturbed would have written, up to where this one ended. */
function whole(text: string): string {
  const total = Number(/total (\d+)\n$/.exec(text)?.[1]);
  return `${Array.from({ length: total }, (_, at) => `${at + 1}\n`).join("")}total ${total}\n`;
}

describe("a virtual machine", () => {
  it(
    "moves to another node with all that runs in it: no line is lost or repeated, and a shell knows its variables",
    async () => {
      await using cluster = await startCluster({ leaseMs: 60_000 });
      const sandbox = await cluster.here.sandboxes.create(MACHINE);
      const counting = collect(await sandbox.start(COUNT));
      const shell = await sandbox.pty({ rows: 24, cols: 80, command: ["sh"] });
      const screen = collect(shell);
      await shell.write("kept=memory; echo is $((40 + 2))\n");
      await expect.poll(screen.text, PATIENCE).toContain("is 42");
      await expect.poll(counting.lines, PATIENCE).toBeGreaterThan(10);

      await cluster.bring(sandbox);
      const moved = await cluster.there.sandboxes.connect(sandbox.id);
      const before = counting.lines();
      await expect.poll(counting.lines, PATIENCE).toBeGreaterThan(before + 10);
      await shell.write("echo $kept $((50 + 5))\n");
      await expect.poll(screen.text, PATIENCE).toContain("memory 55");
      expect(moved.info).toMatchObject({ state: "ready", rolledBackTo: null });
      expect(homes[0]?.left()).toEqual([]);

      // The node that has it now is stopped, and hands it back.
      await cluster.second.stop();
      expect(homes[1]?.left()).toEqual([]);
      await shell.write("echo $kept $((60 + 6))\n");
      await expect.poll(screen.text, PATIENCE).toContain("memory 66");
      await sandbox.exec("touch /tmp/enough");
      const text = await counting.ended;
      expect(text).toBe(whole(text));
      await sandbox.destroy();
      expect(homes[0]?.left()).toEqual([]);
    },
    FIRST_MS,
  );

  it(
    "whose node and QEMU were killed goes on elsewhere from its newest checkpoint, and says so",
    async () => {
      await using cluster = await startCluster({ leaseMs: 6000 });
      const sandbox = await cluster.here.sandboxes.create(MACHINE);
      await sandbox.start("i=0; while sleep 0.05; do i=$((i+1)); echo $i > /tmp/count; done");
      await sandbox.exec("echo saved > file");
      await sandbox.checkpoint();
      await sandbox.exec("echo later > file");
      await cluster.first.kill();
      await crashMachine(sandbox.id as Parameters<typeof crashMachine>[0]);
      const show = async () => (await (await cluster.there.sandboxes.connect(sandbox.id)).exec("cat file")).stdout;
      await expect.poll(() => show().catch(() => ""), { timeout: 60_000, interval: 500 }).toBe("saved\n");
      const found = await cluster.there.sandboxes.connect(sandbox.id);
      expect(found.info.rolledBackTo).not.toBeNull();
      const count = async () => Number((await found.exec("cat /tmp/count")).stdout);
      const first = await count();
      await expect.poll(count, PATIENCE).toBeGreaterThan(first);
      await found.destroy();
      expect(homes[1]?.left()).toEqual([]);
    },
    FIRST_MS,
  );
});
