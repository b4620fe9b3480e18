import { describe, expect, it } from "vitest";
import { crashMachine } from "../../packages/providers/src/host/testing/machine-traces.ts";
import { shared, sharedDirectory } from "../../packages/providers/src/host/testing/shared.ts";
import { collectOutput, undisturbed } from "./numbered-output.ts";
import { MACHINE, QemuHome } from "./qemu-home.ts";
import { startTwoNodes } from "./two-nodes.ts";

/** The first machine of its shape boots. */
const FIRST_MS = 120_000;
const PATIENCE = { timeout: 30_000, interval: 100 };
const COUNT = "i=0; while [ ! -e /tmp/enough ]; do i=$((i+1)); echo $i; sleep 0.02; done; echo total $i";

const homes = [await shared(QemuHome.make()), await shared(QemuHome.make())] as const;
const store = sharedDirectory("store");

const startCluster = ({ leaseMs }: { readonly leaseMs: number }) =>
  startTwoNodes(homes, { store: `file://${store}`, leaseMs });

describe("a virtual machine", () => {
  it(
    "moves to another node with its processes: no output is lost or repeated, and a shell keeps its variables",
    async () => {
      await using cluster = await startCluster({ leaseMs: 60_000 });
      const sandbox = await cluster.here.sandboxes.create(MACHINE);
      const counting = collectOutput(await sandbox.start(COUNT));
      const shell = await sandbox.pty({ rows: 24, cols: 80, command: ["sh"] });
      const screen = collectOutput(shell);
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
      expect(homes[0].left()).toEqual([]);

      // The second node stops and hands the sandbox back.
      await cluster.second.stop();
      expect(homes[1].left()).toEqual([]);
      await shell.write("echo $kept $((60 + 6))\n");
      await expect.poll(screen.text, PATIENCE).toContain("memory 66");
      await sandbox.exec("touch /tmp/enough");
      const text = await counting.ended;
      expect(text).toBe(undisturbed(text));
      await sandbox.destroy();
      expect(homes[0].left()).toEqual([]);
    },
    FIRST_MS,
  );

  it(
    "is restored from its newest checkpoint on another node when its node and QEMU are killed, and reports it",
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
      expect(homes[1].left()).toEqual([]);
    },
    FIRST_MS,
  );
});
