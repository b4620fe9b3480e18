import { createSandboxId } from "@sandpiper/protocol";
import { rejection } from "@sandpiper/protocol/testing";
import { Sandbox } from "../sandbox/sandbox.ts";
import { COUNT, numbers, readLines } from "./counting.ts";
import { describeSavedConnections } from "./network-contract.ts";
import type { CheckpointContext } from "./provider-contract.ts";

/** Checkpoints that keep memory, processes and files. */
export function describeMemoryCheckpoints(context: CheckpointContext): void {
  const { framework, provider, config, leftovers, makeDirectory, restore } = context;
  const { describe, it, expect } = framework;

  describe("checkpoints that keep memory", () => {
    describeSavedConnections(context);

    it("restores a stopped sandbox with its files and running processes", async () => {
      const directory = await makeDirectory();
      const sandbox = await Sandbox.create(provider(), { ...config });
      await sandbox.writeFile("kept.txt", "kept");
      const process = await sandbox.start(COUNT);
      const early = await readLines(process, 5);
      const ended = await sandbox.start("echo done; exit 3");
      await ended.wait();
      await sandbox.checkpoint(directory, { keepsRunning: false });
      expect(sandbox.state).toBe("stopped");
      expect((await rejection(sandbox.exec("true"))).reason).toBe("sandbox_stopped");
      await sandbox.destroy();
      expect(await leftovers(provider(), sandbox.id)).toEqual([]);

      {
        await using restored = await restore(directory, sandbox.id, sandbox);
        expect(await restored.readTextFile("kept.txt")).toBe("kept");
        expect(restored.greetedProcesses.some(({ id, isRunning }) => id === process.id && isRunning)).toBe(true);
        const attached = await restored.attach(process.id, { offset: early.offset });
        const late = await readLines(attached, 10);
        expect(early.text + late.text).toBe(numbers(early.text + late.text));
        expect(await (await restored.attach(ended.id)).wait()).toMatchObject({ exitCode: 3 });
        await restored.exec("touch stop");
        expect(await attached.wait()).toMatchObject({ exitCode: 0 });
      }
      expect(await leftovers(provider(), sandbox.id)).toEqual([]);
    });

    it("forks a sandbox: the forks diverge from the same moment, and the original is unchanged", async () => {
      const directory = await makeDirectory();
      const sandbox = await Sandbox.create(provider(), { ...config });
      const forks: Sandbox[] = [];
      try {
        await sandbox.exec("echo before > history");
        const process = await sandbox.start(COUNT);
        const { offset } = await readLines(process, 3);
        await sandbox.checkpoint(directory, { keepsRunning: true });
        forks.push(...(await Promise.all([1, 2].map(() => restore(directory, createSandboxId(), sandbox)))));
        await Promise.all(forks.map((fork, k) => fork.exec(`echo fork ${k} >> history`)));
        await sandbox.exec("echo original >> history");
        const histories = await Promise.all([sandbox, ...forks].map((each) => each.readTextFile("history")));
        expect(histories).toEqual(["before\noriginal\n", "before\nfork 0\n", "before\nfork 1\n"]);
        for (const fork of forks) {
          const { text } = await readLines(await fork.attach(process.id, { offset }), 5);
          expect(text.startsWith(`${numbers("\n".repeat(3)).split("\n").length}\n`)).toBe(true);
        }
        await forks[0]?.destroy();
        expect((await sandbox.exec("cat history")).exitCode).toBe(0);
      } finally {
        await Promise.all([sandbox, ...forks].map((each) => each.destroy()));
      }
      for (const { id } of [sandbox, ...forks]) expect(await leftovers(provider(), id)).toEqual([]);
    });

    it("neither loses nor repeats input across a checkpoint", async () => {
      const directory = await makeDirectory();
      const sandbox = await Sandbox.create(provider(), { ...config });
      const process = await sandbox.start("cat", { stdin: true });
      const position = await process.writeAt(0, bytes("first\n"));
      await sandbox.checkpoint(directory, { keepsRunning: false });
      await sandbox.destroy();
      await using restored = await restore(directory, sandbox.id, sandbox);
      const attached = await restored.attach(process.id);
      await attached.writeAt(0, bytes("first\n"));
      await attached.writeAt(position, bytes("second\n"), { close: true });
      const { text } = await readLines(attached, 2);
      expect(text).toBe("first\nsecond\n");
    });
  });
}

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
