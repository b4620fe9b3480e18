import { rejection } from "@sandpiper/protocol/testing";
import { Sandbox } from "../sandbox/sandbox.ts";
import { COUNT, numbers, readLines } from "./counting.ts";
import { describeFileCheckpoints } from "./file-checkpoint-contract.ts";
import { describeMemoryCheckpoints } from "./memory-checkpoint-contract.ts";
import type { CheckpointContext, ContractContext } from "./provider-contract.ts";

export function describeCheckpoints(context: ContractContext): void {
  const { framework, provider, config, leftovers, capabilities, makeDirectory } = context;
  const { describe, it, expect } = framework;
  if (capabilities.checkpoint === "none") {
    describe("checkpoints", () => {
      it("refuses a checkpoint where the provider has none", async () => {
        await using sandbox = await Sandbox.create(provider(), { ...config });
        expect(await rejection(sandbox.checkpoint("/nowhere", { keepsRunning: true }))).toMatchObject({
          code: "unimplemented",
          reason: "provider_lacks_capability",
        });
        expect((await sandbox.exec("echo still")).stdout).toBe("still\n");
      });
    });
    return;
  }
  if (makeDirectory === undefined) throw new Error("a provider with checkpoints needs makeDirectory");

  const restore: CheckpointContext["restore"] = async (directory, id, saved) => {
    const prepared = await Sandbox.prepare(provider(), saved.config, { id });
    return await Sandbox.restore(provider(), saved.config, { prepared, directory, createdAt: saved.createdAt });
  };
  const parts = { ...context, makeDirectory, restore };
  if (capabilities.checkpoint === "memory") describeMemoryCheckpoints(parts);
  else describeFileCheckpoints(parts);

  describe("checkpoints", () => {
    it("keeps a sandbox running through a checkpoint, and readers and callers only wait", async () => {
      const directory = await makeDirectory();
      await using sandbox = await Sandbox.create(provider(), { ...config });
      const process = await sandbox.start(COUNT);
      const reading = readLines(process, 30);
      const saving = sandbox.checkpoint(directory, { keepsRunning: true });
      const calls = Promise.all([sandbox.exec("echo a"), sandbox.exec("echo b")]);
      expect((await saving).pausedMs).toBeGreaterThan(0);
      expect((await calls).map(({ stdout }) => stdout)).toEqual(["a\n", "b\n"]);
      expect(sandbox.state).toBe("ready");
      const { text } = await reading;
      expect(text).toBe(numbers(text));
    });

    it("leaves a sandbox unchanged when a checkpoint fails", async () => {
      await using sandbox = await Sandbox.create(provider(), { ...config });
      for (const keepsRunning of [true, false]) {
        await rejection(sandbox.checkpoint("/dev/null/nothing", { keepsRunning }));
        expect(sandbox.state).toBe("ready");
        expect((await sandbox.exec("echo still")).stdout).toBe("still\n");
      }
    });

    it("leaves nothing of a prepared instance that is not used or whose checkpoint is damaged", async () => {
      const unused = await Sandbox.create(provider(), { ...config });
      await unused.destroy();
      const prepared = await Sandbox.prepare(provider(), unused.config, { id: unused.id });
      await prepared.destroy();
      expect(await leftovers(provider(), unused.id)).toEqual([]);
      await rejection(restore(await makeDirectory(), unused.id, unused));
      expect(await leftovers(provider(), unused.id)).toEqual([]);
    });

    it("names the requirements of a restore", async () => {
      const [one, other] = [await requirements(), await requirements()];
      expect(one).toEqual(other);
      expect(Object.values(one).every((value) => typeof value === "string")).toBe(true);
    });
  });

  const requirements = () => provider().checkpointRequirements(config?.rootfs ?? "host");
}
