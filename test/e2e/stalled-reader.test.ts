import { createHash } from "node:crypto";
import type { Sandbox } from "@sandpiper/core";
import { createSandbox } from "@sandpiper/node";
import { describe, expect, it } from "vitest";
import { embeddedGuest } from "../../packages/cli/src/guest/create-guest.ts";
import { sharedDirectory } from "../../packages/providers/src/host/testing/shared.ts";
import { untilSteady } from "./until-steady.ts";

const scratch = sharedDirectory("e2e");
const MIB = 1024 ** 2;

describe("a reader that stalls", () => {
  it("loses nothing, and blocks no other command, stream or sandbox", { timeout: 120_000 }, async () => {
    await using sandbox = await createSandbox({ home: scratch });
    // More than the journal's 64 MiB, so that the process has to wait for its reader.
    const make =
      "head -c 16M /dev/urandom > /tmp/block && for n in 1 2 3 4 5 6; do echo $n; cat /tmp/block; done > /tmp/all";
    expect((await sandbox.exec(`${make} && cp /tmp/all /tmp/more && cat /tmp/more >> /tmp/all`)).exitCode).toBe(0);
    const { stdout: expected } = await sandbox.exec("sha256sum < /tmp/all");

    const stalled = await sandbox.start(["cat", "/tmp/all"], { isRead: true });
    const received = createHash("sha256");
    const othersDone = Promise.withResolvers<void>();
    const stalling = Promise.withResolvers<void>();
    let isStalling = false;
    let droppedBytes = 0;
    let sizeBytes = 0;
    const reading = (async () => {
      for await (const { bytes, dropped } of stalled.output) {
        received.update(bytes);
        droppedBytes += dropped;
        sizeBytes += bytes.length;
        if (isStalling || sizeBytes < MIB) continue;
        isStalling = true;
        stalling.resolve();
        await othersDone.promise;
      }
    })();

    await stalling.promise;
    await untilItWaits(sandbox, stalled.id);
    const sizeAtStallBytes = sizeBytes;
    const bystander = await createSandbox({ home: scratch });
    try {
      // Another command, another stream of the same size and another sandbox still work.
      expect((await sandbox.exec("echo quick")).stdout).toBe("quick\n");
      const other = await sandbox.start(["cat", "/tmp/all"], { isRead: true });
      const otherHash = createHash("sha256");
      for await (const { bytes } of other.output) otherHash.update(bytes);
      expect(`${otherHash.digest("hex")}  -\n`).toBe(expected);
      expect((await bystander.exec("echo quick")).stdout).toBe("quick\n");
    } finally {
      await bystander.destroy();
    }
    expect(sizeBytes).toBe(sizeAtStallBytes);
    const running = (await sandbox.processes()).find(({ id }) => id === stalled.id);
    expect(running?.isRunning).toBe(true);

    othersDone.resolve();
    await reading;
    expect(droppedBytes).toBe(0);
    expect(`${received.digest("hex")}  -\n`).toBe(expected);
    expect((await stalled.wait()).exitCode).toBe(0);
  });

  it("loses nothing of a command of `sandpiper run` when it starts late", async () => {
    await using sandbox = await createSandbox({ home: scratch });
    const command = await embeddedGuest(sandbox).start(["head", "-c", "100M", "/dev/zero"], {});
    // A command that did not wait for its reader would overrun the journal's 64 MiB.
    await untilItWaits(sandbox, command.id);
    let sizeBytes = 0;
    for await (const { bytes } of command.output) sizeBytes += bytes.length;
    expect(sizeBytes).toBe(100 * MIB);
  });
});

/** Waits until a process writes nothing more. */
function untilItWaits(sandbox: Sandbox, id: string): Promise<void> {
  return untilSteady(async () => (await sandbox.processes()).find((process_) => process_.id === id)?.endOffset ?? 0);
}
