import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { Sandbox } from "@sandpiper/core";
import { createSandboxId } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { crashMachine, tracesOf } from "../host/testing/machine-traces.ts";
import { describeFixture } from "../host/testing/provider-fixture.ts";
import { shared } from "../host/testing/shared.ts";
import { createFixture } from "./testing/fixture.ts";

if (!process.env["SANDPIPER_FIRECRACKER"]) {
  it.skip(
    "the firecracker provider passes its contract on a real Firecracker (skipped: SANDPIPER_FIRECRACKER is not set)",
  );
} else {
  const fixture = await shared(createFixture());
  describeFixture("firecracker", fixture, {
    isolation: "vm",
    crash: crashMachine,
    tracesOf,
    traces: [/\/firecracker\/instances\//],
  });

  describe("a machine of a real Firecracker", () => {
    it("has the configured memory, processors, processes and disk, and no network", async () => {
      await using sandbox = await fixture.create({ vcpuCount: 1, maxProcesses: 24 });
      const seen = await sandbox.exec(
        "awk '/MemTotal/ { print $2 }' /proc/meminfo; nproc; ls /sys/class/net; uname -r",
      );
      const [total = "", processors, network, kernel] = seen.stdout.split("\n");
      expect(Number(total)).toBeLessThanOrEqual(192 * 1024);
      expect([processors, network]).toEqual(["1", "lo"]);
      expect(kernel).toContain("cloud");
      const forks = await sandbox.exec("for i in $(seq 60); do sleep 5 & done; wait", { timeoutMs: 20_000 });
      expect(forks.stderr).toMatch(/fork/i);
      const full = await sandbox.exec("head -c 200000000 /dev/zero > big", { user: "root" });
      expect(full.stderr).toContain("No space left");
    });

    it("has the current time and its own hostname and random numbers after a restore", async () => {
      const directory = await mkdtemp(join(fixture.stateDirectory, "checkpoint-"));
      await using sandbox = await fixture.create();
      await sandbox.checkpoint(directory, { keepsRunning: true });
      const look = async (each: Sandbox) =>
        (await each.exec("hostname; head -c 16 /dev/urandom | base64; date +%s")).stdout.split("\n");
      const fork = async () => {
        const id = createSandboxId();
        const prepared = await Sandbox.prepare(fixture.provider, sandbox.config, { id });
        const options = { prepared, directory, createdAt: sandbox.createdAt };
        await using restored = await Sandbox.restore(fixture.provider, sandbox.config, options);
        return await look(restored);
      };
      const seen = [await look(sandbox), await fork(), await fork()];
      expect(new Set(seen.map(([hostname]) => hostname)).size).toBe(3);
      expect(new Set(seen.map(([, random]) => random)).size).toBe(3);
      for (const [, , seconds] of seen) expect(Math.abs(Number(seconds) - Date.now() / 1000)).toBeLessThan(30);
    });
  });
}
