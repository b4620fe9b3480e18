import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type ProcessHandle, Sandbox, SandboxError, type StartOptions } from "@sandpiper/core";
import { FakeClock, rejection, settle } from "@sandpiper/core/testing";
import { createSandboxId } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { freshDirectory } from "../host/testing/shared.ts";
import type { MockFaults } from "./faults.ts";
import { MockProvider } from "./provider.ts";

const directory = freshDirectory("mock");

/** A sandbox, and another host to restore it on, each with its own clock and faults. */
async function setUp(faults: MockFaults = {}) {
  const clock = new FakeClock();
  const provider = new MockProvider({ clock, faults });
  const sandbox = await Sandbox.create(provider, {}, { clock });
  const otherClock = new FakeClock();
  await otherClock.advance(1_000_000);
  const otherFaults: MockFaults = {};
  const other = new MockProvider({ clock: otherClock, faults: otherFaults });
  const restore = async (signal?: AbortSignal) => {
    const prepared = await Sandbox.prepare(other, sandbox.config, { id: createSandboxId() });
    const { config, createdAt } = sandbox;
    return await Sandbox.restore(other, config, { prepared, directory, createdAt, clock: otherClock, signal });
  };
  return { clock, faults, provider, sandbox, other, otherClock, otherFaults, restore };
}

async function text(process: ProcessHandle): Promise<string> {
  return Buffer.concat(await Array.fromAsync(process.output, ({ bytes }) => bytes)).toString();
}

/** Starts a command, saves it after a while, and finds it on the other host. */
async function moved(command: string, options: StartOptions & { readonly afterMs: number }) {
  const { clock, sandbox, otherClock, restore } = await setUp();
  const { id } = await sandbox.start(command, options);
  await clock.advance(options.afterMs);
  await sandbox.checkpoint(directory, { keepsRunning: false });
  return { otherClock, process: await (await restore()).attach(id) };
}

describe("a restored program", () => {
  it("sleeps only for the time that was left", async () => {
    const { otherClock, process } = await moved("echo tired; sleep 10; echo awake", { afterMs: 4000 });
    let isAwake = false;
    const output = text(process).finally(() => (isAwake = true));
    await otherClock.advance(5900);
    expect(isAwake).toBe(false);
    await otherClock.advance(100);
    expect(await output).toBe("tired\nawake\n");
    expect(await process.wait()).toMatchObject({ exitCode: 0, durationMs: 10_000 });
  });

  it("has only the rest of its time limit", async () => {
    const { otherClock, process } = await moved("sleep 60", { afterMs: 4000, timeoutMs: 10_000 });
    await otherClock.advance(6000);
    expect(await process.wait()).toMatchObject({ timedOut: true, durationMs: 10_000 });
  });

  it("continues in the middle of its script, with its variables", async () => {
    const script = 'i=0; while [ ! -e stop ]; do i=$((i+1)); echo "$i"; sleep 1; touch "seen$i"; done; echo end';
    const { clock, sandbox, otherClock, restore } = await setUp();
    const { id } = await sandbox.start(script);
    await clock.advance(2500);
    await sandbox.checkpoint(directory, { keepsRunning: false });
    const restored = await restore();
    await otherClock.advance(1000);
    await restored.writeFile("stop", "");
    await otherClock.advance(500);
    expect(await text(await restored.attach(id))).toBe("1\n2\n3\n4\nend\n");
    expect((await restored.listDir(".")).map(({ name }) => name)).toEqual(["seen1", "seen2", "seen3", "seen4", "stop"]);
  });

  it("writes the rest of its output after a stalled reader", async () => {
    const { sandbox, restore } = await setUp();
    const process = await sandbox.start("head -c 3000000 /dev/zero; echo end", { journalBytes: 100_000 });
    const reader = process.output[Symbol.asyncIterator]();
    await reader.next();
    await settle();
    expect(await sandbox.processes()).toMatchObject([{ id: process.id, isRunning: true }]);
    await sandbox.checkpoint(directory, { keepsRunning: true });
    const attached = await (await restore()).attach(process.id);
    const chunks = await Array.fromAsync(attached.output);
    const output = Buffer.concat(chunks.map(({ bytes }) => bytes)).toString();
    expect((chunks[0]?.dropped ?? 0) + output.length).toBe(3_000_004);
    expect(output.endsWith("\0end\n")).toBe(true);
  });

  it("does not start a file again that it was writing", async () => {
    const { sandbox, restore } = await setUp();
    const process = await sandbox.start("cat > typed", { stdin: true });
    await process.write("first\n");
    await sandbox.checkpoint(directory, { keepsRunning: false });
    const restored = await restore();
    const attached = await restored.attach(process.id);
    await attached.writeAt(6, new TextEncoder().encode("second\n"), { close: true });
    await attached.wait();
    expect(await restored.readTextFile("typed")).toBe("first\nsecond\n");
  });
});

describe("a checkpoint", () => {
  it("delays all calls for as long as it takes, and sends nothing in the meantime", async () => {
    const { clock, faults, sandbox } = await setUp();
    faults.checkpointDelayMs = 1000;
    const process = await sandbox.start('i=0; while true; do i=$((i+1)); echo "$i"; sleep 0.3; done');
    const lines: string[] = [];
    (async () => {
      for await (const { bytes } of process.output) lines.push(Buffer.from(bytes).toString());
    })().catch(() => {});
    await settle();
    const saving = sandbox.checkpoint(directory, { keepsRunning: true });
    await clock.advance(999);
    expect(lines).toEqual(["1\n"]);
    await clock.advance(1);
    expect(await saving).toEqual({ pausedMs: 1000 });
    await settle();
    expect(lines.join("")).toBe("1\n2\n3\n4\n");
    await sandbox.destroy();
  });

  it("leaves the sandbox unchanged when it fails", async () => {
    const { faults, sandbox } = await setUp();
    faults.checkpointFailure = SandboxError.fromFields({ code: "unavailable", reason: "disk_full", message: "?" });
    expect(await rejection(sandbox.checkpoint(directory, { keepsRunning: false }))).toMatchObject({
      reason: "disk_full",
    });
    expect(sandbox.state).toBe("ready");
    expect((await sandbox.exec("echo still")).stdout).toBe("still\n");
  });

  it("needs a quiesced agent", async () => {
    const { provider, sandbox } = await setUp();
    const saving = provider.instance(sandbox.id).checkpoint(directory, { keepsRunning: true });
    expect(await rejection(saving)).toMatchObject({ reason: "not_quiesced" });
  });

  it("names its requirements on the restoring host", async () => {
    const { provider, other, otherFaults } = await setUp();
    const here = await provider.checkpointRequirements("host");
    expect(await other.checkpointRequirements("host")).toEqual(here);
    otherFaults.release = "2";
    expect(await other.checkpointRequirements("host")).toEqual({ ...here, runtime: "mock 2" });
  });
});

describe("a restore", () => {
  const failing = (reason: string) => SandboxError.fromFields({ code: "internal", reason, message: "?" });
  it.each<[string, MockFaults, string]>([
    ["fails", { restoreFailure: failing("no_memory") }, "no_memory"],
    ["cannot be prepared", { bootFailure: failing("not_prepared") }, "not_prepared"],
  ])("leaves nothing behind when it %s", async (_, faults, reason) => {
    const { sandbox, other, otherFaults, restore } = await setUp();
    await sandbox.checkpoint(directory, { keepsRunning: true });
    Object.assign(otherFaults, faults);
    expect(await rejection(restore())).toMatchObject({ reason });
    expect(other.size).toBe(0);
  });

  it("reports a damaged checkpoint and leaves nothing behind", async () => {
    const { sandbox, other, restore } = await setUp();
    await sandbox.checkpoint(directory, { keepsRunning: true });
    await writeFile(join(directory, "agent.bin"), "torn");
    expect(await rejection(restore())).toMatchObject({ code: "data_loss", reason: "checkpoint_damaged" });
    expect(other.size).toBe(0);
  });

  it("leaves nothing behind when it is aborted", async () => {
    const { sandbox, other, otherClock, otherFaults, restore } = await setUp();
    await sandbox.checkpoint(directory, { keepsRunning: true });
    otherFaults.restoreDelayMs = 1000;
    const abort = new AbortController();
    const restoring = rejection(restore(abort.signal));
    await otherClock.advance(500);
    expect(other.size).toBe(1);
    abort.abort();
    await restoring;
    expect(other.size).toBe(0);
  });

  it("refuses an id that is taken", async () => {
    const { provider, sandbox } = await setUp();
    const preparing = Sandbox.prepare(provider, sandbox.config, { id: sandbox.id });
    expect(await rejection(preparing)).toMatchObject({ code: "already_exists", reason: "instance_exists" });
    expect((await sandbox.exec("echo untouched")).stdout).toBe("untouched\n");
  });
});
