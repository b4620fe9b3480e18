import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { createSandbox } from "@sandpiper/node";
import { describe, expect, it } from "vitest";
import { embeddedGuest } from "../../packages/cli/src/guest/create-guest.ts";
import { useScratchDirectory } from "./scratch-directory.ts";

const scratch = useScratchDirectory();
/** The least it stalls; on a slow machine it stalls until the others are done. */
const STALL_MS = 10_000;
const MIB = 1024 ** 2;

describe("a reader that stalls", () => {
  it("loses nothing and blocks nobody", { timeout: 120_000 }, async () => {
    await using sandbox = await createSandbox({ home: scratch.path });
    // More than the journal's 64 MiB, so that the process has to wait for its reader.
    const make =
      "head -c 16M /dev/urandom > /tmp/block && for n in 1 2 3 4 5 6; do echo $n; cat /tmp/block; done > /tmp/all";
    expect((await sandbox.exec(`${make} && cp /tmp/all /tmp/more && cat /tmp/more >> /tmp/all`)).exitCode).toBe(0);
    const { stdout: expected } = await sandbox.exec("sha256sum < /tmp/all");

    const stalled = await sandbox.start(["cat", "/tmp/all"], { isRead: true });
    const received = createHash("sha256");
    const othersDone = Promise.withResolvers<void>();
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
        await Promise.all([sleep(STALL_MS), othersDone.promise]);
      }
    })();

    while (!isStalling) await sleep(10);
    const sizeAtStallBytes = sizeBytes;
    const bystander = await createSandbox({ home: scratch.path });
    try {
      // Another command, another stream of the same size and another sandbox go on meanwhile.
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

  it("loses nothing of a command of `sandpiper run`, although it comes late", async () => {
    await using sandbox = await createSandbox({ home: scratch.path });
    const command = await embeddedGuest(sandbox).start(["head", "-c", "100M", "/dev/zero"], {});
    // Nobody would make the command wait in this time, and it would go on past the journal's 64 MiB.
    await sandbox.exec("sleep 1");
    let sizeBytes = 0;
    for await (const { bytes } of command.output) sizeBytes += bytes.length;
    expect(sizeBytes).toBe(100 * MIB);
  });
});
