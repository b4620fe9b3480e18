import { setTimeout as sleep } from "node:timers/promises";
import type { Sandbox } from "@sandpiper/core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createQemuFixture, type QemuFixture } from "./testing/fixture.ts";

let fixture: QemuFixture;

beforeAll(async () => {
  fixture = await createQemuFixture();
}, 120_000);

afterAll(() => fixture?.[Symbol.asyncDispose](), 60_000);

async function output(sandbox: Sandbox, command: string): Promise<string> {
  return (await sandbox.exec(command)).stdout.trim();
}

describe("machines that are copies of one", () => {
  it("have names of their own, random numbers of their own, and the right time", async () => {
    await using first = await fixture.create();
    // The machine that they are copies of stands still at a time that is over by then.
    await sleep(2500);
    await using second = await fixture.create();
    const [names, numbers] = await Promise.all([
      Promise.all([first, second].map((sandbox) => output(sandbox, "hostname"))),
      Promise.all([first, second].map((sandbox) => output(sandbox, "head -c 16 /dev/urandom | base64"))),
    ]);
    expect(new Set(names).size).toBe(2);
    expect(new Set(numbers).size).toBe(2);
    const before = Date.now() / 1000;
    const inside = Number(await output(second, "date +%s.%N"));
    expect(inside).toBeGreaterThan(before - 1.2);
    expect(inside).toBeLessThan(Date.now() / 1000 + 1.2);
  }, 120_000);

  it("set their clocks to a fraction of a second soon after", async () => {
    await using sandbox = await fixture.create();
    await expect
      .poll(
        async () => {
          const before = Date.now() / 1000;
          const inside = Number(await output(sandbox, "date +%s.%N"));
          return inside > before - 0.2 && inside < Date.now() / 1000 + 0.2;
        },
        { timeout: 10_000 },
      )
      .toBe(true);
  }, 60_000);
});

describe("a machine", () => {
  it("looks like any Linux to what runs in it", async () => {
    await using sandbox = await fixture.create();
    expect(await output(sandbox, "id -un")).toBe("user");
    expect(await output(sandbox, "ls /")).not.toContain("lost+found");
    expect(await output(sandbox, "ls -l /dev/fd /dev/stdin /dev/shm -d | wc -l")).toBe("3");
    expect(await output(sandbox, "ip -o addr show lo")).toContain("127.0.0.1/8");
    expect(await output(sandbox, "ls /sys/class/net")).toBe("lo");
  }, 60_000);

  it("has no more than its processes", async () => {
    await using sandbox = await fixture.create({ maxProcesses: 40 });
    const result = await sandbox.exec("for i in $(seq 100); do sleep 30 & done; jobs -r | wc -l");
    expect(result.stderr + result.stdout).toMatch(/[Cc]annot fork|Resource temporarily unavailable/);
  }, 60_000);

  it("says when a process had to end for want of memory", async () => {
    await using sandbox = await fixture.create();
    const hog = await sandbox.exec(["tail", "/dev/zero"]);
    expect(hog).toMatchObject({ outOfMemory: true });
    expect((await sandbox.exec("true")).exitCode).toBe(0);
  }, 60_000);
});
