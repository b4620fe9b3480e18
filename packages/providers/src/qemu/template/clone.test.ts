import { mkdtemp, readFile } from "node:fs/promises";
import { join } from "node:path";
import { Sandbox } from "@sandpiper/core";
import { createSandboxId } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { machineProcesses } from "../../host/testing/machine-traces.ts";
import { shared } from "../../host/testing/shared.ts";
import { createQemuFixture } from "../testing/fixture.ts";

const fixture = await shared(createQemuFixture());
// The first machine of a shape boots for long.
await (await fixture.create()).destroy();

/** Two clocks are read one after the other, on a host that may be busy. */
const CLOCK_TOLERANCE_S = 5;

async function describeSelf(sandbox: Sandbox) {
  const { stdout } = await sandbox.exec("hostname; head -c 32 /dev/urandom | sha256sum; date +%s");
  const [hostname, random, seconds] = stdout.split("\n");
  return { hostname, random, lateS: Math.abs(Date.now() / 1000 - Number(seconds)) };
}

describe("clones of one template", () => {
  it("have their own hostnames and random numbers, and the right time", async () => {
    await using one = await fixture.create();
    await using other = await fixture.create();
    const selves = await Promise.all([one, other].map(describeSelf));
    expect(new Set(selves.map(({ hostname }) => hostname)).size).toBe(2);
    expect(new Set(selves.map(({ random }) => random)).size).toBe(2);
    for (const { lateS } of selves) expect(lateS).toBeLessThan(CLOCK_TOLERANCE_S);
  });

  it("share the host's page cache of their root filesystem", async () => {
    await using one = await fixture.create();
    const readBytes = await readRoot(one);
    await using other = await fixture.create();
    expect(await readRoot(other)).toBe(readBytes);
    const [pid] = await machineProcesses(other.id);
    const [, fromDisk] = /^read_bytes: (\d+)$/m.exec(await readFile(`/proc/${pid}/io`, "utf8")) ?? [];
    expect(Number(fromDisk)).toBeLessThan(readBytes / 10);
  });
});

/** Reads all files and returns their total size. */
async function readRoot(sandbox: Sandbox): Promise<number> {
  const { stdout } = await sandbox.exec("find /bin/ /usr -xdev -type f -exec cat {} + | wc -c", { user: "root" });
  expect(Number(stdout)).toBeGreaterThan(2 ** 20);
  return Number(stdout);
}

describe("forks of one sandbox", () => {
  it("have their own hostnames and random numbers, and the current time", async () => {
    await using sandbox = await fixture.create();
    const directory = await mkdtemp(join(fixture.stateDirectory, "checkpoint-"));
    await sandbox.checkpoint(directory, { keepsRunning: true });
    const { config, createdAt } = sandbox;
    const forks = await Promise.all(
      [1, 2].map(async () => {
        const prepared = await Sandbox.prepare(fixture.provider, config, { id: createSandboxId() });
        return await Sandbox.restore(fixture.provider, config, { prepared, directory, createdAt });
      }),
    );
    try {
      const selves = await Promise.all([sandbox, ...forks].map(describeSelf));
      expect(new Set(selves.map(({ hostname }) => hostname)).size).toBe(3);
      expect(new Set(selves.map(({ random }) => random)).size).toBe(3);
      for (const { lateS } of selves) expect(lateS).toBeLessThan(CLOCK_TOLERANCE_S);
    } finally {
      await Promise.all(forks.map((fork) => fork.destroy()));
    }
  });
});
