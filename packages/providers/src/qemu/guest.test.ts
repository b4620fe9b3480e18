import { setTimeout as sleep } from "node:timers/promises";
import type { Sandbox } from "@sandpiper/core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { findQemuHost, findQemuState } from "./host.ts";
import { createQemuFixture, type QemuFixture } from "./testing/fixture.ts";

let fixture: QemuFixture;
let sandbox: Sandbox;

beforeAll(async () => {
  fixture = await createQemuFixture();
  sandbox = await fixture.create();
});
afterAll(() => fixture[Symbol.asyncDispose]());

async function output(command: string, machine = sandbox): Promise<string> {
  return (await machine.exec(command)).stdout.trim();
}

it("a machine looks like any Linux to what runs in it", async () => {
  expect(await output("id -un")).toBe("user");
  expect(await output("ls /")).not.toContain("lost+found");
  expect(await output("ls -d /dev/fd /dev/stdin /dev/shm /dev/pts/ptmx /run/lock | wc -l")).toBe("5");
  expect(await output("ip -o addr show lo")).toContain("127.0.0.1/8");
  expect(await output("cat /proc/1/comm")).toBe("init");
});

it("programs run at the same addresses each time where they are translated, and copy by words, and nowhere else", async () => {
  const { accelerator } = await findQemuHost(findQemuState({ stateDirectory: fixture.stateDirectory }));
  const library = () => output("grep -m 1 libc.so /proc/self/maps | cut -d - -f 1");
  const addresses = new Set([await library(), await library(), await library()]);
  for (const address of addresses) expect(address).toMatch(/^[0-9a-f]{8,}$/);
  const features = (await output("grep -m 1 ^flags /proc/cpuinfo")).split(" ");
  expect(features).toContain("lm");
  if (accelerator === "tcg") {
    expect(addresses.size).toBe(1);
    expect(features).not.toContain("erms");
  } else {
    expect(addresses.size).toBeGreaterThan(1);
  }
});

it("a machine says when a process had to end for want of memory", async () => {
  expect(await sandbox.exec(["tail", "/dev/zero"])).toMatchObject({ outOfMemory: true });
  expect((await sandbox.exec("kill -9 $$")).outOfMemory).toBe(false);
});

it("a machine's clock is right to a fraction of a second, soon after it was copied from one that stands still", async () => {
  // Longer than the error that would be found.
  await sleep(2000);
  await using copy = await fixture.create();
  const isRight = async () => {
    const beforeS = Date.now() / 1000;
    const insideS = Number(await output("date +%s.%N", copy));
    return insideS > beforeS - 0.2 && insideS < Date.now() / 1000 + 0.2;
  };
  await expect.poll(isRight).toBe(true);
});
