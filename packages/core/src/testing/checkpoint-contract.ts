import { createSandboxId, type SandboxId } from "@sandpiper/protocol";
import type { ProcessHandle } from "../process/process-handle.ts";
import { Sandbox } from "../sandbox/sandbox.ts";
import type { ContractContext } from "./provider-contract.ts";
import { rejection } from "./rejection.ts";

/** Says `1`, `2`, `3`… until it is told to stop, so that a gap or a repetition shows. */
const COUNT = 'i=0; while [ ! -e stop ]; do i=$((i+1)); echo "$i"; sleep 0.02; done';

export function describeCheckpoints(context: ContractContext): void {
  const { framework, provider, config, leftovers, capabilities, makeDirectory } = context;
  const { describe, it, expect } = framework;
  if (capabilities.checkpoint === "none") {
    describe("checkpoints", () => {
      it("are refused by a provider that has none", async () => {
        const sandbox = await Sandbox.create(provider(), { ...config });
        try {
          expect(await rejection(sandbox.checkpoint("/nowhere", { keepsRunning: true }))).toMatchObject({
            code: "unimplemented",
            reason: "provider_lacks_capability",
          });
          expect((await sandbox.exec("echo still")).stdout).toBe("still\n");
        } finally {
          await sandbox.destroy();
        }
      });
    });
    return;
  }
  if (makeDirectory === undefined) throw new Error("a provider with checkpoints needs makeDirectory");

  const restore = async (directory: string, id: SandboxId, saved: Sandbox) => {
    const prepared = await Sandbox.prepare(provider(), saved.config, { id });
    return await Sandbox.restore(provider(), saved.config, { prepared, directory, createdAt: saved.createdAt });
  };

  describe("checkpoints", () => {
    it("stop a sandbox that goes on elsewhere, with its files and its running processes", async () => {
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

      const restored = await restore(directory, sandbox.id, sandbox);
      try {
        expect(await restored.readTextFile("kept.txt")).toBe("kept");
        expect(restored.greetedProcesses.some(({ id, isRunning }) => id === process.id && isRunning)).toBe(true);
        const attached = await restored.attach(process.id, { offset: early.offset });
        const late = await readLines(attached, 10);
        expect(early.text + late.text).toBe(numbers(early.text + late.text));
        expect(await (await restored.attach(ended.id)).wait()).toMatchObject({ exitCode: 3 });
        await restored.exec("touch stop");
        expect(await attached.wait()).toMatchObject({ exitCode: 0 });
      } finally {
        await restored.destroy();
      }
      expect(await leftovers(provider(), sandbox.id)).toEqual([]);
    });

    it("leave a sandbox running, and readers and callers only wait", async () => {
      const directory = await makeDirectory();
      const sandbox = await Sandbox.create(provider(), { ...config });
      try {
        const process = await sandbox.start(COUNT);
        const reading = readLines(process, 30);
        const saving = sandbox.checkpoint(directory, { keepsRunning: true });
        const calls = Promise.all([sandbox.exec("echo a"), sandbox.exec("echo b")]);
        expect((await saving).pausedMs).toBeGreaterThan(0);
        expect((await calls).map(({ stdout }) => stdout)).toEqual(["a\n", "b\n"]);
        expect(sandbox.state).toBe("ready");
        const { text } = await reading;
        expect(text).toBe(numbers(text));
      } finally {
        await sandbox.destroy();
      }
    });

    it("fork a sandbox: each goes its own way from the same moment, and the first is untouched", async () => {
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

    it("lose and repeat nothing of what is typed", async () => {
      const directory = await makeDirectory();
      const sandbox = await Sandbox.create(provider(), { ...config });
      const process = await sandbox.start("cat", { stdin: true });
      const position = await process.writeAt(0, bytes("first\n"));
      await sandbox.checkpoint(directory, { keepsRunning: false });
      await sandbox.destroy();
      const restored = await restore(directory, sandbox.id, sandbox);
      try {
        const attached = await restored.attach(process.id);
        await attached.writeAt(0, bytes("first\n"));
        await attached.writeAt(position, bytes("second\n"), { close: true });
        const { text } = await readLines(attached, 2);
        expect(text).toBe("first\nsecond\n");
      } finally {
        await restored.destroy();
      }
    });

    it("that fail leave the sandbox as it was", async () => {
      const sandbox = await Sandbox.create(provider(), { ...config });
      try {
        for (const keepsRunning of [true, false]) {
          await rejection(sandbox.checkpoint("/dev/null/nothing", { keepsRunning }));
          expect(sandbox.state).toBe("ready");
          expect((await sandbox.exec("echo still")).stdout).toBe("still\n");
        }
      } finally {
        await sandbox.destroy();
      }
    });

    it("need a place, which leaves nothing when it is not used or what it was for is damaged", async () => {
      const unused = await Sandbox.create(provider(), { ...config });
      await unused.destroy();
      const prepared = await Sandbox.prepare(provider(), unused.config, { id: unused.id });
      await prepared.destroy();
      expect(await leftovers(provider(), unused.id)).toEqual([]);
      await rejection(restore(await makeDirectory(), unused.id, unused));
      expect(await leftovers(provider(), unused.id)).toEqual([]);
    });

    it("say what must be the same where they are restored", async () => {
      const [one, other] = [await requirements(), await requirements()];
      expect(one).toEqual(other);
      expect(Object.values(one).every((value) => typeof value === "string")).toBe(true);
    });
  });

  const requirements = () => provider().checkpointRequirements(config?.rootfs ?? "host");
}

/** Reads until so many lines have come, and tells where the next one begins. */
async function readLines(process: ProcessHandle, count: number): Promise<{ text: string; offset: number }> {
  const decoder = new TextDecoder();
  let text = "";
  let offset = 0;
  for await (const chunk of process.output) {
    text += decoder.decode(chunk.bytes, { stream: true });
    offset = chunk.offset + chunk.bytes.length;
    if (text.endsWith("\n") && text.split("\n").length > count) break;
  }
  return { text, offset };
}

/** As many numbered lines as the text has. */
function numbers(text: string): string {
  const count = text.split("\n").length - 1;
  return Array.from({ length: count }, (_, k) => `${k + 1}\n`).join("");
}

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
