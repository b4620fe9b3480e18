import { Sandbox, type SandboxConfigOptions, SandboxError, type SandboxOptions } from "@sandpiper/core";
import { FakeClock, rejection, settle } from "@sandpiper/core/testing";
import { createSandboxId } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import type { MockFaults } from "./faults.ts";
import { MockProvider } from "./provider.ts";

function setUp(faults: MockFaults = {}) {
  const clock = new FakeClock();
  const provider = new MockProvider({ clock, faults });
  const create = (config: SandboxConfigOptions = {}, options: SandboxOptions = {}) =>
    Sandbox.create(provider, config, { clock, ...options });
  return { clock, provider, create };
}

async function created(config: SandboxConfigOptions = {}, options: SandboxOptions = {}) {
  const { create, ...rest } = setUp();
  return { ...rest, sandbox: await create(config, options) };
}

/** Advances a fake clock until a promise is settled. */
async function during<T>(clock: FakeClock, promise: Promise<T>): Promise<T> {
  let isSettled = false;
  promise.then(
    () => (isSettled = true),
    () => (isSettled = true),
  );
  await settle();
  while (!isSettled) await clock.advance(50);
  return promise;
}

describe("creating a sandbox", () => {
  it("becomes ready once the agent has answered hello and ping", async () => {
    const { clock, provider, create } = setUp({ bootDelayMs: 500, refusedConnects: 3 });
    const id = createSandboxId();
    const sandbox = await during(clock, create({ memoryMib: 512, name: "mine" }, { id }));
    expect(sandbox).toMatchObject({ id, state: "ready", provider: "mock", config: { memoryMib: 512, name: "mine" } });
    expect(sandbox.capabilities).toBe(provider.capabilities);
    expect(sandbox.languages).toEqual(["sh"]);
    expect(await sandbox.isHealthy()).toBe(true);
  });

  it.each<[string, MockFaults, string]>([
    [
      "the boot fails",
      { bootFailure: SandboxError.fromFields({ code: "unavailable", reason: "no_kvm", message: "?" }) },
      "no_kvm",
    ],
    ["the agent never accepts", { refusedConnects: Number.POSITIVE_INFINITY }, "agent_timeout"],
    ["the agent never answers", { silentConnects: Number.POSITIVE_INFINITY }, "agent_timeout"],
    ["the agent never answers a ping", { unanswered: ["ping"] }, "agent_timeout"],
  ])("leaves nothing behind when %s", async (_, faults, reason) => {
    const { clock, provider, create } = setUp(faults);
    const error = await during(clock, rejection(create()));
    expect(error.reason).toBe(reason);
    expect(provider.size).toBe(0);
  });

  it("leaves nothing behind when the instance dies before its agent answers", async () => {
    const { clock, provider, create } = setUp({ silentConnects: 1 });
    const id = createSandboxId();
    const creating = rejection(create({}, { id }));
    await settle();
    provider.instance(id).runOutOfMemory();
    expect(await during(clock, creating)).toMatchObject({ code: "gone", reason: "out_of_memory" });
    expect(clock.monotonicMs()).toBeLessThan(100);
    expect(provider.size).toBe(0);
  });

  it.each([
    ["boots", { bootDelayMs: 1000 }],
    ["connects", { refusedConnects: 50 }],
  ])("leaves nothing behind when it is aborted while it %s", async (_, faults) => {
    const { clock, provider, create } = setUp(faults);
    const abort = new AbortController();
    const creating = rejection(create({}, { signal: abort.signal }));
    await clock.advance(300);
    expect(provider.size).toBe(1);
    abort.abort();
    expect(await creating).toMatchObject({ code: "canceled" });
    expect(provider.size).toBe(0);
  });

  it("reports the first error when the clean-up fails too", async () => {
    const { clock, create } = setUp({ refusedConnects: 200, failedDestroys: 1 });
    const error = await during(clock, rejection(create()));
    expect(error).toMatchObject({ code: "unavailable", reason: "agent_timeout" });
    expect(error.details["cleanupError"]).toContain("could not be destroyed");
  });

  it("refuses a directory that its provider would ignore", async () => {
    const { provider, create } = setUp();
    expect(await rejection(create({ chroot: "/elsewhere" }))).toMatchObject({ reason: "chroot_mismatch" });
    expect(provider.size).toBe(0);
  });
});

describe("an agent with a bad channel", () => {
  it.each<[string, MockFaults]>([
    [
      "bytes of an earlier caller come first",
      { staleBytes: new TextEncoder().encode('left over"}\n{"jsonrpc":"2.0","id":1') },
    ],
    ["garbage lies between the answers", { garbage: new TextEncoder().encode("\u0000garbage\n{}\n[]\n") }],
    ["attachments are torn", { hasTornFrames: true }],
    ["answers come in another order", { isOrderReversed: true }],
    ["everything arrives byte by byte", { chunkBytes: 1 }],
    ["the channel is slow to take what is sent", { slowReaderMs: 50 }],
  ])("works although %s", async (_, faults) => {
    const { clock, create } = setUp(faults);
    const sandbox = await during(clock, create());
    await during(clock, sandbox.writeFile("a.txt", "some text"));
    const results = await during(
      clock,
      Promise.all([sandbox.exec("echo one"), sandbox.exec("cat a.txt"), sandbox.readTextFile("a.txt")]),
    );
    expect(results).toMatchObject([{ stdout: "one\n" }, { stdout: "some text" }, "some text"]);
  });

  it("does not pass a late answer to the next call", async () => {
    const { clock, provider, sandbox } = await created({}, { rpcTimeoutMs: 1000 });
    provider.faults.answerDelayMs = (method) => (method === "file.stat" ? 1500 : 0);
    await sandbox.writeFile("slow.txt", "12345");
    const late = rejection(sandbox.files.stat("slow.txt"));
    await clock.advance(1000);
    expect(await late).toMatchObject({ code: "deadline_exceeded", reason: "rpc_timeout" });
    const next = sandbox.files.mkdir("next");
    await clock.advance(1000);
    expect(await next).toBe(true);
  });

  it("opens a new channel for the next operation after the last was dropped", async () => {
    const { clock, provider, sandbox } = await created();
    const waiting = rejection(sandbox.exec("sleep 60"));
    await settle();
    provider.instance(sandbox.id).dropChannel();
    expect(await during(clock, waiting)).toMatchObject({ code: "unavailable", reason: "channel_closed" });
    expect(sandbox.state).toBe("ready");
    expect((await during(clock, sandbox.exec("echo again"))).stdout).toBe("again\n");
    expect(provider.instance(sandbox.id).channels).toHaveLength(2);
  });

  it("resumes reading at the same byte after the channel was dropped", async () => {
    const { clock, provider, sandbox } = await created();
    const process = await sandbox.start("head -c 5000000 /dev/zero; cat", { stdin: true });
    let seenBytes = 0;
    const reading = (async () => {
      for await (const { offset, bytes, dropped } of process.output) {
        expect([offset, dropped]).toEqual([seenBytes, 0]);
        seenBytes += bytes.length;
        if (seenBytes > 3_000_000 && provider.instance(sandbox.id).channels.length === 1) {
          provider.instance(sandbox.id).dropChannel();
        }
      }
    })();
    await clock.advance(2000);
    expect(provider.instance(sandbox.id).channels).toHaveLength(2);
    expect(seenBytes).toBe(5_000_000);
    await process.write("the end");
    await process.closeStdin();
    await during(clock, reading);
    expect(seenBytes).toBe(5_000_007);
  });
});

describe("a sandbox", () => {
  it("fails with the reason when its instance crashes", async () => {
    const { clock, provider, sandbox } = await created();
    const running = rejection(sandbox.exec("sleep 60"));
    await settle();
    provider.instance(sandbox.id).crash("kernel panic");
    expect(await during(clock, running)).toMatchObject({ code: "gone", reason: "instance_crashed" });
    expect(sandbox.state).toBe("failed");
    expect(sandbox.failure?.message).toContain("kernel panic");
    expect(await sandbox.isHealthy()).toBe(false);
    const error = await rejection(sandbox.readFile("x"));
    expect(error).toMatchObject({ reason: "invalid_state", details: { expected: "ready", actual: "failed" } });
    expect(error.message).toContain("kernel panic");
  });

  it("reports a lack of memory as the reason, with the remedy", async () => {
    const { clock, provider, sandbox } = await created();
    const running = rejection(sandbox.exec("sleep 60"));
    await settle();
    provider.instance(sandbox.id).runOutOfMemory();
    const error = await during(clock, running);
    expect(error).toMatchObject({ code: "gone", reason: "out_of_memory" });
    expect(error.hint).toContain("memoryMib");
  });

  it("must be ready for every operation", async () => {
    const { clock, sandbox } = await created();
    await during(clock, sandbox.destroy());
    const operations: (() => Promise<unknown>)[] = [
      () => sandbox.exec("true"),
      () => sandbox.execute("true"),
      () => sandbox.executeCode("sh", "true"),
      () => sandbox.start("true"),
      () => sandbox.attach("x"),
      () => sandbox.processes(),
      () => sandbox.readFile("x"),
      () => sandbox.readTextFile("x"),
      () => sandbox.writeFile("x", "y"),
      () => sandbox.listDir("/"),
      () => sandbox.files.stat("x"),
      () => sandbox.files.list("x").next(),
      () => sandbox.files.mkdir("x"),
      () => sandbox.files.move("x", "y"),
      () => sandbox.files.remove("x"),
      () => sandbox.files.chmod("x", 0o600),
      () => sandbox.files.read("x").next(),
      () => sandbox.files.write("x", "y"),
      () => sandbox.files.watch("x"),
      () => sandbox.dial({ port: 7 }),
      () => sandbox.metrics(),
      () => sandbox.checkpoint("/nowhere", { keepsRunning: true }),
    ];
    for (const operation of operations) {
      expect(await rejection(operation())).toMatchObject({
        code: "failed_precondition",
        reason: "invalid_state",
        details: { expected: "ready", actual: "destroyed" },
      });
    }
  });

  it("fails pending operations when it is destroyed", async () => {
    const { clock, sandbox } = await created();
    const running = rejection(sandbox.exec("sleep 60"));
    await settle();
    await during(clock, sandbox.destroy());
    expect(await running).toMatchObject({ code: "gone", reason: "sandbox_destroyed" });
  });

  it("can be destroyed again after a failure", async () => {
    const { clock, provider, create } = setUp({ failedDestroys: 1 });
    const sandbox = await create();
    expect(await during(clock, rejection(sandbox.destroy()))).toMatchObject({ reason: "mock_fault" });
    expect(provider.size).toBe(1);
    await Promise.all([sandbox.destroy(), sandbox.destroy()]);
    expect(provider.size).toBe(0);
  });

  it("is healthy while it is busy, even if it does not answer", async () => {
    const { clock, provider, sandbox } = await created();
    provider.faults.unanswered = ["ping"];
    const sick = sandbox.isHealthy();
    await clock.advance(30_000);
    expect(await sick).toBe(false);
    const abort = new AbortController();
    const busy = rejection(sandbox.exec("sleep 60", { signal: abort.signal }));
    await settle();
    expect(await sandbox.isHealthy()).toBe(true);
    abort.abort();
    await busy;
  });

  it("takes time limit, directory and primary language from its configuration", async () => {
    const { clock, sandbox } = await created({ timeoutMs: 200, cwd: "/tmp", language: "sh" });
    expect(await during(clock, sandbox.exec("sleep 60"))).toMatchObject({ timedOut: true, exitCode: 137 });
    expect((await sandbox.exec("pwd")).stdout).toBe("/tmp\n");
    expect((await sandbox.exec("pwd", { cwd: "/home" })).stdout).toBe("/home\n");
    expect((await sandbox.executeCode(undefined, "echo primary")).stdout).toBe("primary\n");
  });

  it("requires a language when it has no primary one", async () => {
    const { sandbox } = await created();
    const error = await rejection(sandbox.executeCode(undefined, "echo x"));
    expect(error).toMatchObject({
      code: "invalid_argument",
      reason: "unknown_language",
      details: { languages: ["sh"] },
    });
    expect(error.hint).toContain("sh");
  });

  it("limits the size of a file that it reads into memory", async () => {
    const { sandbox } = await created();
    await sandbox.writeFile("big.bin", new Uint8Array(100_000));
    const error = await rejection(sandbox.readFile("big.bin", { maxBytes: 99_999 }));
    expect(error).toMatchObject({ code: "resource_exhausted", reason: "file_too_large" });
    expect((await sandbox.readFile("big.bin", { maxBytes: 100_000 })).length).toBe(100_000);
  });

  it("connects to a port inside", async () => {
    const { sandbox } = await created();
    await using tunnel = await sandbox.dial({ port: 7 });
    const sent = new Uint8Array(2_000_000).map((_, at) => at % 251);
    const writing = tunnel.write(sent).then(() => tunnel.end());
    let at = 0;
    for await (const bytes of tunnel.readable) for (const byte of bytes) if (byte === sent[at]) at++;
    await writing;
    await tunnel.closed;
    expect(at).toBe(sent.length);
    expect(await rejection(sandbox.dial({ port: 8 }))).toMatchObject({ reason: "connection_refused" });
  });

  it("reports its own usage", async () => {
    const { sandbox } = await created();
    await sandbox.writeFile("x", new Uint8Array(1234));
    expect(await sandbox.metrics()).toMatchObject({ diskUsedBytes: 1234, processes: 1 });
  });

  it("writes to a process in the order of the calls, however long each takes", async () => {
    const { sandbox } = await created();
    const process = await sandbox.start("cat", { stdin: true });
    const long = "a".repeat(600_000);
    await Promise.all([process.write(long), process.write("b"), process.closeStdin()]);
    const { stdout } = process;
    const bytes = (await Array.fromAsync(stdout)).flatMap((chunk) => [...chunk]);
    expect(Buffer.from(bytes).toString() === `${long}b`).toBe(true);
  });

  it("disposes of a process handle after the sandbox has ended", async () => {
    const { clock, sandbox } = await created();
    const process = await sandbox.start("sleep 60");
    await during(clock, sandbox.destroy());
    await process[Symbol.asyncDispose]();
  });

  it("drops the oldest unread output, and reports how much", async () => {
    const { sandbox } = await created();
    const process = await sandbox.start("head -c 200000 /dev/zero", { journalBytes: 70_000 });
    await process.wait();
    const chunks = await Array.fromAsync(process.output);
    expect(chunks[0]?.dropped).toBe(130_000);
    expect(chunks.reduce((sum, { bytes }) => sum + bytes.length, 0)).toBe(70_000);
  });
});
