import { createSandboxId } from "@sandpiper/protocol";
import { rejection } from "@sandpiper/protocol/testing";
import { Sandbox } from "../sandbox/sandbox.ts";
import { COUNT, readLines } from "./counting.ts";
import type { CheckpointContext } from "./provider-contract.ts";

/** Checkpoints that keep files and no processes. */
export function describeFileCheckpoints(context: CheckpointContext): void {
  const { framework, provider, config, leftovers, capabilities, makeDirectory, restore } = context;
  const { describe, it, expect } = framework;
  /** In the root filesystem and, if there is one, in a volume. */
  const places = ["kept", ...(capabilities.supportsContainers ? ["/.data/kept"] : [])];
  const write = async (sandbox: Sandbox, text: string) => {
    for (const place of places) await sandbox.writeFile(place, text);
  };
  const read = (sandbox: Sandbox) => Promise.all(places.map((place) => sandbox.readTextFile(place)));
  const everywhere = (text: string) => places.map(() => text);

  describe("checkpoints that keep files", () => {
    it("restores a stopped sandbox with its files, and reports lost processes", async () => {
      const directory = await makeDirectory();
      const sandbox = await Sandbox.create(provider(), { ...config });
      await write(sandbox, "kept");
      const process = await sandbox.start(COUNT);
      await readLines(process, 5);
      const waiting = rejection(process.wait());
      await sandbox.checkpoint(directory, { keepsRunning: false });
      expect(sandbox.state).toBe("stopped");
      expect(await waiting).toMatchObject({ code: "unavailable", reason: "sandbox_stopped" });
      expect((await rejection(sandbox.exec("true"))).reason).toBe("sandbox_stopped");
      await sandbox.destroy();
      expect(await leftovers(provider(), sandbox.id)).toEqual([]);

      {
        await using restored = await restore(directory, sandbox.id, sandbox);
        expect(await read(restored)).toEqual(everywhere("kept"));
        expect(restored.greetedProcesses).toEqual([]);
        expect(await rejection(restored.attach(process.id))).toMatchObject({ code: "gone", reason: "process_lost" });
        expect((await restored.exec("echo ready")).stdout).toBe("ready\n");
        // A client that got no answer to its start repeats it; the files may already show what the process did.
        const repeated = { id: process.id, isRepeated: true };
        expect(await rejection(restored.start("true", repeated))).toMatchObject({ reason: "process_lost" });
        expect(await (await restored.start("true", { id: process.id })).wait()).toMatchObject({ exitCode: 0 });
        const unknown = await restored.start("true", { id: "never-started", isRepeated: true });
        expect(await unknown.wait()).toMatchObject({ exitCode: 0 });
      }
      expect(await leftovers(provider(), sandbox.id)).toEqual([]);
    });

    it("takes checkpoints of a restored sandbox again and again", async () => {
      let sandbox = await Sandbox.create(provider(), { ...config });
      try {
        for (const round of ["1", "2", "3"]) {
          await write(sandbox, round);
          await sandbox.exec(`echo ${round} >> history; echo ${round} > file-${round}`);
          if (round === "2") await sandbox.files.remove("file-1");
          const directory = await makeDirectory();
          await sandbox.checkpoint(directory, { keepsRunning: false });
          await sandbox.destroy();
          sandbox = await restore(directory, sandbox.id, sandbox);
          expect(await read(sandbox)).toEqual(everywhere(round));
        }
        expect(await sandbox.readTextFile("history")).toBe("1\n2\n3\n");
        expect((await rejection(sandbox.readFile("file-1"))).code).toBe("not_found");
        expect(await sandbox.readTextFile("file-2")).toBe("2\n");
      } finally {
        await sandbox.destroy();
      }
      expect(await leftovers(provider(), sandbox.id)).toEqual([]);
    });

    it("forks a sandbox: the forks diverge from the same files, and the original is unchanged", async () => {
      const directory = await makeDirectory();
      const sandbox = await Sandbox.create(provider(), { ...config });
      const forks: Sandbox[] = [];
      try {
        await write(sandbox, "before");
        const process = await sandbox.start(COUNT);
        await readLines(process, 3);
        await sandbox.checkpoint(directory, { keepsRunning: true });
        await write(sandbox, "original");
        forks.push(...(await Promise.all([1, 2].map(() => restore(directory, createSandboxId(), sandbox)))));
        for (const fork of forks) {
          expect(await read(fork)).toEqual(everywhere("before"));
          expect((await rejection(fork.attach(process.id))).reason).toBe("process_lost");
        }
        await Promise.all(forks.map((fork, k) => write(fork, `fork ${k}`)));
        await forks[0]?.destroy();
        const [, second] = forks;
        expect(second && (await read(second))).toEqual(everywhere("fork 1"));
        expect(await read(sandbox)).toEqual(everywhere("original"));
        await sandbox.exec("touch stop");
        expect(await process.wait()).toMatchObject({ exitCode: 0 });
      } finally {
        await Promise.all([sandbox, ...forks].map((each) => each.destroy()));
      }
      for (const { id } of [sandbox, ...forks]) expect(await leftovers(provider(), id)).toEqual([]);
    });
  });
}
