import { Readable } from "node:stream";
import { type Clock, type ProcessExit, SandboxError, systemClock } from "@sandpiper/core";
import { describe, expect, it } from "vitest";
import type { Guest } from "../guest/guest.ts";
import { runCommand } from "./run-command.ts";

const ended: ProcessExit = { exitCode: 0, signal: null, timedOut: false, outOfMemory: false, durationMs: 5 };
const never = new Promise<never>(() => {});

interface FakeProcess {
  readonly chunks?: readonly string[];
  readonly exit?: Promise<ProcessExit>;
  /** What its output ends with, instead of an end. */
  readonly failure?: Promise<never>;
}

/** A sandbox that runs one made-up process. */
function sandboxWith({ chunks = [], exit = Promise.resolve(ended), failure }: FakeProcess) {
  const written: string[] = [];
  const process_ = {
    async *output() {
      for (const text of chunks) yield { source: "stdout", bytes: Buffer.from(text), dropped: 0 };
      if (failure !== undefined) await failure;
    },
    wait: () => exit,
    write: async (bytes: Uint8Array) => void written.push(Buffer.from(bytes).toString()),
    closeStdin: async () => void written.push("<end>"),
  };
  const start = async () => ({ ...process_, output: process_.output() });
  return { written, sandbox: { id: "the-sandbox", start } as unknown as Guest };
}

function run(sandbox: Guest, options: { stdin?: Readable; timeoutMs?: number; clock?: Clock } = {}) {
  const shown: string[] = [];
  const outcome = runCommand(sandbox, {
    program: ["command"],
    env: {},
    timeoutMs: options.timeoutMs,
    stdin: options.stdin,
    onOutput: (_, bytes) => void shown.push(Buffer.from(bytes).toString()),
    clock: options.clock ?? systemClock,
  });
  return { shown, outcome };
}

describe("a command", () => {
  it("gets the input and shows the output", async () => {
    const { sandbox, written } = sandboxWith({ chunks: ["a", "b"] });
    const { shown, outcome } = run(sandbox, { stdin: Readable.from([Buffer.from("in")]) });
    expect(await outcome).toEqual({
      exitCode: 0,
      signal: null,
      durationMs: 5,
      timedOut: false,
      outOfMemory: false,
      hasSandboxEnded: false,
      hasLostOutput: false,
    });
    expect(shown).toEqual(["a", "b"]);
    await new Promise((resolve) => setImmediate(resolve));
    expect(written).toEqual(["in", "<end>"]);
  });

  it("killed by its timeout has exit code 124", async () => {
    const { sandbox } = sandboxWith({
      exit: Promise.resolve({ ...ended, exitCode: 137, signal: "SIGKILL", timedOut: true }),
    });
    expect(await run(sandbox).outcome).toMatchObject({ exitCode: 124, signal: "SIGKILL", timedOut: true });
  });

  it("that exhausts the sandbox's memory ends like a killed one, and its output is kept", async () => {
    const outOfMemory = new SandboxError("out_of_memory", { message: "too much" });
    const failure = Promise.reject(outOfMemory);
    const { shown, outcome } = run(sandboxWith({ chunks: ["before"], exit: failure, failure }).sandbox);
    expect(await outcome).toMatchObject({ exitCode: 137, signal: "SIGKILL", outOfMemory: true });
    expect(shown).toEqual(["before"]);
  });

  it("fails when its input cannot be read", async () => {
    const stdin = new Readable({ read: () => stdin.destroy(new Error("EIO: the terminal is gone")) });
    const { outcome } = run(sandboxWith({ exit: never, failure: never }).sandbox, { stdin });
    await expect(outcome).rejects.toThrow("EIO");
  });

  it("fails ten seconds after its timeout in a sandbox that ignores it", async () => {
    const scheduled: { delayMs: number; callback: () => void }[] = [];
    const schedule = (delayMs: number, callback: () => void) => {
      scheduled.push({ delayMs, callback });
      return () => {};
    };
    const clock: Clock = { ...systemClock, schedule };
    const { outcome } = run(sandboxWith({ exit: never, failure: never }).sandbox, { timeoutMs: 5_000, clock });
    await new Promise((resolve) => setImmediate(resolve));
    expect(scheduled.map(({ delayMs }) => delayMs)).toEqual([15_000]);
    scheduled[0]?.callback();
    await expect(outcome).rejects.toMatchObject({ reason: "timeout_ignored" });
  });
});
