import { describe, expect, it } from "vitest";
import { freshDirectory, shared } from "../../packages/providers/src/host/testing/shared.ts";
import { MACHINE, QemuHome } from "./qemu-home.ts";
import { startTwoNodes } from "./two-nodes.ts";

/** The first machine of its shape boots. */
const FIRST_MS = 180_000;
const LEASE_MS = 12_000;
const PATIENCE = { timeout: 60_000, interval: 100 };

const homes = [await shared(QemuHome.make()), await shared(QemuHome.make())] as const;
const store = freshDirectory("store");

describe("a virtual machine whose node hangs for longer than its lease", () => {
  it.each([
    ["started for its sandbox", 0],
    ["prepared before its sandbox existed", 1],
  ])(
    "has ended before another node restores it, if it was %s",
    async (_, prepared) => {
      const withPrepared = homes.map((home) => ({
        config: (settings: Parameters<QemuHome["config"]>[0]) => home.config({ ...settings, qemu: { prepared } }),
      })) as [QemuHome, QemuHome];
      await using cluster = await startTwoNodes(withPrepared, { store: `file://${store}`, leaseMs: LEASE_MS });
      const [home] = homes;
      let sandbox = await cluster.here.sandboxes.create(MACHINE);
      const isFromPrepared = async () => {
        if (home.isFromPrepared(sandbox.id) || prepared === 0) return home.isFromPrepared(sandbox.id);
        // The first machine of a shape starts alone, and the next one is prepared after it.
        await sandbox.destroy();
        sandbox = await cluster.here.sandboxes.create(MACHINE);
        return false;
      };
      await expect.poll(isFromPrepared, PATIENCE).toBe(prepared > 0);
      await sandbox.exec("echo saved > file");
      await sandbox.checkpoint();
      await sandbox.exec("echo later > file");
      expect(home.processesOf(sandbox.id)).not.toEqual([]);
      cluster.first.freeze();
      const moved = await cluster.there.sandboxes.connect(sandbox.id);
      expect((await moved.exec("cat file")).stdout).toBe("saved\n");
      expect(home.processesOf(sandbox.id)).toEqual([]);
      cluster.first.thaw();
      expect((await sandbox.exec("cat file")).stdout).toBe("saved\n");
      await moved.destroy();
    },
    FIRST_MS,
  );
});
