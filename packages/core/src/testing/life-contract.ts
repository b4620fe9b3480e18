import { rejection } from "@sandpiper/protocol/testing";
import { Sandbox } from "../sandbox/sandbox.ts";
import type { ContractContext } from "./provider-contract.ts";

export function describeLife(context: ContractContext): void {
  const { framework, provider, config, leftovers, crash } = context;
  const { describe, it, expect } = framework;

  describe("life", () => {
    it("creates a sandbox that is ready and listed, and destroys it without leftovers", async () => {
      const sandbox = await Sandbox.create(provider(), { ...config });
      expect(sandbox.state).toBe("ready");
      expect(await sandbox.isHealthy()).toBe(true);
      const record = (await provider().list()).find(({ id }) => id === sandbox.id);
      expect(record).toMatchObject({ isRunning: true, isOrphan: false });
      await sandbox.destroy();
      await sandbox.destroy();
      expect(sandbox.state).toBe("destroyed");
      expect(await sandbox.isHealthy()).toBe(false);
      expect((await sandbox.closed).reason).toBe("destroyed");
      expect((await provider().list()).map(({ id }) => id).includes(sandbox.id)).toBe(false);
      expect(await leftovers(provider(), sandbox.id)).toEqual([]);
      expect(await rejection(sandbox.exec("true"))).toMatchObject({
        code: "failed_precondition",
        reason: "invalid_state",
        details: { expected: "ready", actual: "destroyed" },
      });
    });

    it("isolates the files of two sandboxes", async () => {
      await using one = await Sandbox.create(provider(), { ...config });
      await using other = await Sandbox.create(provider(), { ...config });
      await one.writeFile("only-in-one.txt", "secret");
      expect((await rejection(other.readFile("only-in-one.txt"))).code).toBe("not_found");
    });

    it("fails running commands with the reason when an instance crashes, and can still be destroyed", async () => {
      const sandbox = await Sandbox.create(provider(), { ...config });
      const running = rejection(sandbox.exec("sleep 60"));
      await crash(provider(), sandbox.id);
      expect((await sandbox.closed).reason).toBe("crashed");
      expect(await running).toMatchObject({
        reason: "instance_crashed",
        retryable: false,
        details: { state: "failed" },
      });
      expect(sandbox.state).toBe("failed");
      expect(await rejection(sandbox.exec("true"))).toMatchObject({ reason: "invalid_state" });
      await sandbox.destroy();
      expect(await leftovers(provider(), sandbox.id)).toEqual([]);
    });
  });
}
