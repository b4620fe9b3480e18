import { SandboxError } from "@sandpiper/sdk";
import { describe, expect, it } from "vitest";
import { GvisorHome } from "./gvisor-home.ts";
import { NodeProcess } from "./node-process.ts";

/** The errors that a caller may get when it loses a race; any other is a bug in the node. */
const lost = new Set(["not_found", "gone", "failed_precondition", "unavailable", "canceled", "unauthenticated"]);

async function mayLose(work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(SandboxError);
    expect(lost).toContain((thrown as SandboxError).code);
  }
}

describe("a sandbox on gVisor under concurrent calls", () => {
  it("is destroyed once, fails every call with a documented error, and leaves nothing behind", async () => {
    await using home = new GvisorHome();
    await using node = await NodeProcess.start({ home: home.path, port: 0 });
    const ids: string[] = [];
    const round = async (ttlMs: number | null) => {
      const sandbox = await node.client.sandboxes.create({ memoryMib: 200 });
      ids.push(sandbox.id);
      await sandbox.exec("head -c 60000000 /dev/zero > /tmp/large");
      if (ttlMs !== null) await sandbox.update({ ttlMs });
      const reading = (async () => {
        let size = 0;
        for await (const bytes of await sandbox.files.readStream("/tmp/large")) size += bytes.length;
        expect(size).toBe(60_000_000);
      })();
      const uses = [reading, sandbox.exec("sleep 30"), sandbox.exec("true"), sandbox.files.write("/tmp/a", "b")];
      const running = sandbox.start("yes").then(async (process) => {
        for await (const _ of process.output);
        await process.wait();
      });
      const ends = ttlMs === null ? [sandbox.destroy(), sandbox.destroy()] : [];
      const changes = [sandbox.update({ labels: { late: "yes" } }), sandbox.exec("echo late")];
      await Promise.all([...uses, running, ...ends, ...changes].map(mayLose));
      await expect.poll(async () => (await sandbox.refresh()).state).toBe("destroyed");
    };
    await Promise.all([round(null), round(300)]);
    const events = await node.client.pastEvents({ limit: 1000 });
    for (const id of ids) {
      const kinds = events.filter(({ sandboxId }) => sandboxId === id).map(({ kind }) => kind);
      expect(kinds.filter((kind) => kind === "sandbox.destroyed")).toHaveLength(1);
      expect(kinds).not.toContain("sandbox.failed");
    }
    expect(await home.instances()).toEqual([]);
    expect(await home.left(ids)).toEqual([]);
  });

  it("is removed when its caller disconnects during the create", async () => {
    await using home = new GvisorHome();
    await using node = await NodeProcess.start({ home: home.path, port: 0 });
    await Promise.all(
      [1, 30, 80, 150].map(async (afterMs) => {
        const creation = node.client.sandboxes.create({ signal: AbortSignal.timeout(afterMs) });
        await creation.then(
          (sandbox) => sandbox.destroy(),
          () => {},
        );
      }),
    );
    // The node finishes pending work before it stops.
    await node.stop();
    await using next = await NodeProcess.start({ home: home.path, port: 0 });
    expect(next.started).toMatchObject({ adopted: [], removed: [], lost: [] });
    expect(await home.instances()).toEqual([]);
  });
});
