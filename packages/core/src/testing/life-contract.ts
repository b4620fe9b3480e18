import { createSandboxId } from "@sandpiper/protocol";
import { Sandbox } from "../sandbox/sandbox.ts";
import type { ContractContext } from "./provider-contract.ts";
import { rejection } from "./rejection.ts";

export function describeLife(context: ContractContext): void {
  const { framework, provider, config, leftovers, crash, capabilities } = context;
  const { describe, it, expect } = framework;

  describe("life", () => {
    it("creates a sandbox that is ready and listed, and destroys it without leaving anything", async () => {
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

    it("keeps the files of two sandboxes apart", async () => {
      await using one = await Sandbox.create(provider(), { ...config });
      await using other = await Sandbox.create(provider(), { ...config });
      await one.writeFile("only-in-one.txt", "secret");
      expect((await rejection(other.readFile("only-in-one.txt"))).code).toBe("not_found");
    });

    it("leaves nothing when creation is aborted at once", async () => {
      const id = createSandboxId();
      const abort = new AbortController();
      const creation = Sandbox.create(provider(), { ...config }, { id, signal: abort.signal });
      abort.abort();
      expect((await rejection(creation)).code).toBe("canceled");
      expect(await leftovers(provider(), id)).toEqual([]);
    });

    it("leaves nothing when creation is aborted while it boots", async () => {
      const id = createSandboxId();
      const abort = new AbortController();
      const creation = Sandbox.create(provider(), { ...config }, { id, signal: abort.signal });
      setTimeout(() => abort.abort(), 20);
      // A boot may be faster than this abort; then it is a sandbox like any other.
      await creation.then(
        (sandbox) => sandbox.destroy(),
        (error) => expect(error.code).toBe("canceled"),
      );
      expect(await leftovers(provider(), id)).toEqual([]);
    });

    it("ends what is running with the reason when an instance crashes, and can still be destroyed", async () => {
      const sandbox = await Sandbox.create(provider(), { ...config });
      const running = rejection(sandbox.exec("sleep 60"));
      await crash(provider(), sandbox.id);
      expect((await sandbox.closed).reason).toBe("crashed");
      expect(await running).toMatchObject({ code: "unavailable", reason: "instance_crashed" });
      expect(sandbox.state).toBe("failed");
      expect(await rejection(sandbox.exec("true"))).toMatchObject({ reason: "invalid_state" });
      await sandbox.destroy();
      expect(await leftovers(provider(), sandbox.id)).toEqual([]);
    });

    it("removes a living instance by its id alone, and its sandbox learns of it", async () => {
      const sandbox = await Sandbox.create(provider(), { ...config });
      await provider().remove(sandbox.id);
      await sandbox.closed;
      expect(await sandbox.isHealthy()).toBe(false);
      await sandbox.destroy();
      expect(await leftovers(provider(), sandbox.id)).toEqual([]);
    });

    it("takes the removal of an unknown id calmly", async () => {
      await provider().remove(createSandboxId());
    });

    const adopts = capabilities.supportsAdopt;
    const adoptTest = adopts ? it : it.skip;
    const reason = adopts ? "" : " (skipped: this provider declares supportsAdopt false)";
    adoptTest(`adopts a sandbox that an earlier program left running${reason}`, async () => {
      if (context.orphan === undefined) throw new Error("a provider that supports adopt needs the orphan option");
      const { provider: next, id } = await context.orphan({ ...config, name: "orphan", timeoutMs: 60_000 });
      expect((await next.list()).find((record) => record.id === id)).toMatchObject({ isRunning: true, isOrphan: true });
      const sandbox = await Sandbox.adopt(next, id);
      expect(sandbox.config).toMatchObject({ name: "orphan", timeoutMs: 60_000 });
      expect((await sandbox.exec("echo still here")).stdout).toBe("still here\n");
      await sandbox.destroy();
      expect(await leftovers(next, id)).toEqual([]);
    });
  });
}
