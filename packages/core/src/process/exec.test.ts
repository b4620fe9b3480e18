import type { ExecOptions } from "@sandpiper/protocol";
import { rejection, settle } from "@sandpiper/protocol/testing";
import { describe, expect, it } from "vitest";
import { connectedAgent } from "../testing/scripted-agent.ts";
import { exec } from "./exec.ts";

const text = (value: string) => new TextEncoder().encode(value);
const EXITED = { exit_code: 0, signal: null, timed_out: false, out_of_memory: false };

async function started(options: ExecOptions = {}) {
  const { clock, agent, client } = await connectedAgent();
  agent.on("process.spawn", ({ message }) => agent.answer(message, { process: "p", pid: 2 }));
  const result = exec(client, { command: "command" }, options);
  result.catch(() => {});
  await settle();
  const output = agent.sent("process.output")[0] ?? {};
  let offset = 0;
  const write = (source: string, bytes: Uint8Array) => {
    agent.data(output, bytes, { offset, source });
    offset += bytes.length;
  };
  const exit = (status: object = {}) => {
    agent.answer(output, { offset });
    agent.answer(agent.sent("process.wait")[0] ?? {}, {
      status: { ...EXITED, ...status },
      duration_ms: 1.5,
      end_offset: offset,
    });
  };
  return { clock, agent, client, result, output, write, exit };
}

describe("exec", () => {
  it("sends spawn, output and wait in one write, and forgets without waiting for the answer", async () => {
    const { agent, result, exit } = await started();
    expect(agent.received.map(({ message }) => message["method"])).toEqual([
      "process.spawn",
      "process.output",
      "process.wait",
    ]);
    expect(agent.writes).toBe(1);
    exit();
    await result;
    await settle();
    expect(agent.sent("process.forget")).toHaveLength(1);
  });

  it("returns results of one shape", async () => {
    const { result, write, exit } = await started();
    write("stdout", text("out"));
    write("stderr", text("err"));
    exit({ exit_code: 3 });
    expect(JSON.stringify(await result)).toBe(
      '{"exitCode":3,"signal":null,"stdout":"out","stderr":"err","durationMs":1.5,"timedOut":false,"outOfMemory":false,"truncated":false}',
    );
  });

  it.each([
    ["SIGKILL", 137],
    ["SIGTERM", 143],
    ["SIGSEGV", 139],
    ["SIGSYS", 159],
    ["SIG40", 168],
  ])("turns %s into exit code %i and names it", async (signal, exitCode) => {
    const { result, exit } = await started();
    exit({ exit_code: null, signal });
    expect(await result).toMatchObject({ exitCode, signal });
  });

  it("does not invent an exit code", async () => {
    const { result, exit } = await started();
    exit({ exit_code: null, signal: null });
    expect(await rejection(result)).toMatchObject({ code: "internal", reason: "invalid_answer" });
  });

  it("distinguishes a timeout from memory exhaustion", async () => {
    const { result, exit } = await started();
    exit({ exit_code: null, signal: "SIGKILL", timed_out: true, out_of_memory: true });
    expect(await result).toMatchObject({ timedOut: true, outOfMemory: true });
  });

  it("decodes output as a whole, wherever its chunks are cut", async () => {
    const { result, write, exit } = await started();
    for (const byte of text("é€😀")) write("stdout", Uint8Array.of(byte));
    exit();
    expect((await result).stdout).toBe("é€😀");
  });

  it("keeps output up to the limit, drains the rest and marks it as truncated", async () => {
    let live = "";
    const { result, write, exit } = await started({
      maxOutputBytes: 4,
      onStderr: (bytes) => {
        live += new TextDecoder().decode(bytes);
      },
    });
    write("stdout", text("abc"));
    write("stderr", text("defgh"));
    write("stdout", text("i"));
    exit();
    expect(await result).toMatchObject({ stdout: "abc", stderr: "d", truncated: true });
    expect(live).toBe("defgh");
  });

  it("refuses an invalid limit before the command starts", async () => {
    const { agent, result } = await started({ maxOutputBytes: Number.NaN });
    expect(await rejection(result)).toMatchObject({ code: "invalid_argument", reason: "invalid_limit" });
    expect(agent.writes).toBe(0);
  });

  it("is not truncated by output that just fits", async () => {
    const { result, write, exit } = await started({ maxOutputBytes: 3 });
    write("stdout", text("abc"));
    exit();
    expect(await result).toMatchObject({ stdout: "abc", truncated: false });
  });

  it("grants credit as output arrives, so that any amount gets through", async () => {
    const { agent, result, write, exit } = await started({ maxOutputBytes: 10 });
    for (let sent = 0; sent < 64; sent++) write("stdout", new Uint8Array(64 * 1024));
    await settle();
    const returned = agent.sent("stream.credit").map(({ params }) => (params as { bytes: number }).bytes);
    expect(returned.reduce((sum, bytes) => sum + bytes)).toBe(4 * 1024 * 1024);
    exit();
    expect((await result).truncated).toBe(true);
  });

  it("leaves the time limit to the guest, and limits the wait for a guest that ignores it", async () => {
    const { clock, agent, result } = await started({ timeoutMs: 5000 });
    expect(agent.sent("process.spawn")[0]).toMatchObject({ params: { timeout_ms: 5000 } });
    await clock.advance(34_999);
    expect(agent.sent("process.signal")).toEqual([]);
    await clock.advance(1);
    expect(await rejection(result)).toMatchObject({ code: "deadline_exceeded", reason: "rpc_timeout" });
    expect(agent.sent("process.signal")).toHaveLength(1);
  });

  it("kills the tree when its caller aborts, and forgets the process once it is dead", async () => {
    const abort = new AbortController();
    const { agent, result, output, exit } = await started({ signal: abort.signal });
    abort.abort();
    expect(await rejection(result)).toMatchObject({ code: "canceled" });
    await settle();
    expect(agent.sent("process.signal")).toMatchObject([{ params: { signal: "SIGKILL", target: "tree" } }]);
    expect(agent.sent("cancel")).toMatchObject([{ params: { call: output["id"] } }]);
    expect(agent.sent("process.forget")).toEqual([]);
    exit({ exit_code: null, signal: "SIGKILL" });
    await settle();
    expect(agent.sent("process.forget")).toHaveLength(1);
  });

  it("starts nothing when its caller has already aborted", async () => {
    const { agent, result } = await started({ signal: AbortSignal.abort() });
    expect((await rejection(result)).code).toBe("canceled");
    expect(agent.writes).toBe(0);
  });

  it("kills the tree when a callback throws, and fails with the callback's error", async () => {
    const thrown = new Error("callback");
    const { agent, result, write } = await started({
      onStdout: () => {
        throw thrown;
      },
    });
    write("stdout", text("x"));
    await expect(result).rejects.toBe(thrown);
    await settle();
    expect(agent.sent("process.signal")).toHaveLength(1);
  });

  it("fails with the error of the start, whichever call fails first", async () => {
    const { agent, client } = await connectedAgent();
    const missing = { code: "not_found", reason: "no_such_process" };
    agent.on("process.output", ({ message }) => agent.fail(message, missing));
    agent.on("process.wait", ({ message }) => agent.fail(message, missing));
    const result = rejection(exec(client, { argv: ["nothing"] }));
    await settle();
    agent.fail(agent.sent("process.spawn")[0] ?? {}, { code: "not_found", reason: "no_such_program" });
    expect(await result).toMatchObject({ code: "not_found", reason: "no_such_program" });
  });

  it("sends the next piece of input when the last was accepted, and ignores unread input", async () => {
    const { agent, result, exit } = await started({ stdin: new Uint8Array(600 * 1024) });
    expect(agent.sent("process.spawn")[0]).toMatchObject({ params: { stdin: true } });
    const pieces = () => agent.received.filter(({ message }) => message["method"] === "process.stdin");
    expect(pieces()).toHaveLength(1);
    agent.answer(pieces()[0]?.message ?? {}, { offset: 256 * 1024 });
    await settle();
    expect(pieces().map(({ attachment }) => attachment?.length)).toEqual([256 * 1024, 256 * 1024]);
    expect(pieces()[1]?.message).toMatchObject({ params: { close: false } });
    agent.refuse(pieces()[1]?.message ?? {}, { code: -32000, message: "closed" });
    exit();
    expect((await result).exitCode).toBe(0);
    expect(pieces()).toHaveLength(2);
  });

  it("sends short input along with the command", async () => {
    const { agent } = await started({ stdin: "hello" });
    expect(agent.writes).toBe(1);
    expect(agent.sent("process.stdin")).toMatchObject([{ params: { close: true } }]);
  });

  it("is refused when output is missing at its end", async () => {
    const { agent, result, output, write, exit } = await started();
    write("stdout", text("abc"));
    agent.answer(output, { offset: 10 });
    exit();
    expect(await rejection(result)).toMatchObject({ code: "data_loss", reason: "stream_cut" });
  });

  it("leaves no timer and no call behind", async () => {
    const { clock, agent, client, result, exit } = await started({ timeoutMs: 1000 });
    exit();
    await result;
    await settle();
    agent.answer(agent.sent("process.forget")[0] ?? {}, {});
    expect(client.openCalls).toBe(0);
    expect(clock.pending).toBe(0);
  });
});
