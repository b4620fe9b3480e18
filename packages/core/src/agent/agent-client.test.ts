import { PROTOCOL_GENERATION } from "@sandpiper/protocol";
import { FakeClock, rejection, settle } from "@sandpiper/protocol/testing";
import { describe, expect, it } from "vitest";
import type { InstanceExit } from "../provider.ts";
import { connectedAgent, ScriptedAgent } from "../testing/scripted-agent.ts";
import { AgentClient } from "./agent-client.ts";

const text = (value: string) => new TextEncoder().encode(value);

describe("calls", () => {
  it("are matched with their answers by id, never by order", async () => {
    const { agent, client } = await connectedAgent();
    const first = client.call("read_file", { path: "first" });
    const second = client.call("read_file", { path: "second" });
    await settle();
    const [one, two] = agent.sent("read_file");
    agent.answer(two ?? {}, { content: "second" });
    agent.answer(one ?? {}, { content: "first" });
    expect(await first).toEqual({ content: "first" });
    expect(await second).toEqual({ content: "second" });
  });

  it("are sent in one write when they are made in one turn", async () => {
    const { agent, client } = await connectedAgent();
    await Promise.all([client.ping(), client.ping(), client.ping()]);
    expect(agent.sent("ping")).toHaveLength(3);
    expect(agent.writes).toBe(1);
  });

  it("are canceled after their timeout, and a late answer is dropped", async () => {
    const { clock, agent, client } = await connectedAgent();
    const late = rejection(client.call("read_file", { path: "late" }));
    await clock.advance(30_000);
    expect(await late).toMatchObject({ code: "deadline_exceeded", reason: "rpc_timeout" });
    const [request] = agent.sent("read_file");
    expect(agent.sent("cancel")).toMatchObject([{ params: { call: request?.["id"] } }]);
    const next = client.call("read_file", { path: "next" });
    await settle();
    agent.answer(request ?? {}, { content: "the late answer" });
    agent.answer(agent.sent("read_file")[1] ?? {}, { content: "the next answer" });
    expect(await next).toEqual({ content: "the next answer" });
    expect(client.faults.strayMessages).toBe(1);
  });

  it("keep their own time limit, and leave no timer behind", async () => {
    const { clock, client } = await connectedAgent();
    expect(clock.pending).toBe(0);
    const short = rejection(client.call("list_dir", { path: "/" }, { timeoutMs: 50 }));
    await clock.advance(49);
    expect(client.openCalls).toBe(1);
    await clock.advance(1);
    expect(await short).toMatchObject({ details: { method: "list_dir", timeoutMs: 50 } });
    expect(clock.pending).toBe(0);
  });

  it("are canceled when their caller aborts", async () => {
    const { agent, client } = await connectedAgent();
    const abort = new AbortController();
    const call = rejection(client.call("read_file", { path: "x" }, { signal: abort.signal }));
    await settle();
    abort.abort(new Error("changed my mind"));
    expect(await call).toMatchObject({ code: "canceled", cause: { message: "changed my mind" } });
    await settle();
    expect(agent.sent("cancel")).toHaveLength(1);
    expect(client.openCalls).toBe(0);
  });

  it("are not sent when their caller has already aborted", async () => {
    const { agent, client } = await connectedAgent();
    expect((await rejection(client.ping({ signal: AbortSignal.abort() }))).code).toBe("canceled");
    await settle();
    expect(agent.writes).toBe(0);
  });

  it("that are longer than the agent reads are refused immediately", async () => {
    const { client } = await connectedAgent();
    const error = await rejection(client.exec("x".repeat(1024 * 1024)));
    expect(error).toMatchObject({ code: "invalid_argument", reason: "request_too_large" });
    expect(client.openCalls).toBe(0);
    await client.ping();
  });

  it("pass on the agent's errors with code, reason, hint and details", async () => {
    const { agent, client } = await connectedAgent();
    agent.on("read_file", ({ message }) =>
      agent.refuse(message, {
        code: -32000,
        message: "no such file",
        data: { code: "not_found", reason: "no_such_file", hint: "look again", details: { path: "x" } },
      }),
    );
    expect(await rejection(client.readFile("x"))).toMatchObject({
      code: "not_found",
      reason: "no_such_file",
      hint: "look again",
      details: { path: "x", rpcCode: -32000 },
    });
  });

  it.each([
    [{ code: -32601, message: "?" }, "unimplemented", "agent_error"],
    [{ code: -32602, message: "?" }, "invalid_argument", "agent_error"],
    [{ code: -32000, message: "?", data: { code: "no_such_code", reason: "x" } }, "internal", "x"],
    [{ code: -32000, message: "?", data: { code: "not_found", reason: "Bad Reason!" } }, "not_found", "agent_error"],
    [{ code: "x" }, "internal", "invalid_answer"],
    ["boom", "internal", "invalid_answer"],
  ])("turn the error %j into %s", async (error, code, reason) => {
    const { agent, client } = await connectedAgent();
    agent.on("read_file", ({ message }) => agent.refuse(message, error as object));
    expect(await rejection(client.readFile("x"))).toMatchObject({ code, reason });
  });

  it.each([[{ content: 7 }], [{}], [[]], ["text"], [null]])("refuse the result %j", async (result) => {
    const { agent, client } = await connectedAgent();
    agent.on("read_file", ({ message }) => agent.answer(message, result as object));
    expect(await rejection(client.readFile("x"))).toMatchObject({ code: "internal", reason: "invalid_answer" });
  });

  it("have the names of the first agents", async () => {
    const { agent, client } = await connectedAgent();
    const result = { exit_code: 0, stdout: "out", stderr: "", signal: null, timed_out: false, out_of_memory: false };
    agent.on("exec", ({ message }) => agent.answer(message, { ...result, truncated: false }));
    agent.on("exec_code", ({ message }) => agent.answer(message, { ...result, truncated: false }));
    agent.on("read_file", ({ message }) => agent.answer(message, { content: "text" }));
    agent.on("write_file", ({ message }) => agent.answer(message, { success: true }));
    agent.on("list_dir", ({ message }) => agent.answer(message, { entries: [{ name: "a", is_dir: true, size: 0 }] }));
    expect((await client.exec("echo out")).stdout).toBe("out");
    expect((await client.execCode("sh", "echo out")).stdout).toBe("out");
    expect(await client.readFile("a")).toBe("text");
    await client.writeFile("a", "text");
    expect(await client.listDir("/")).toEqual([{ name: "a", is_dir: true, size: 0 }]);
    expect(agent.received.map(({ message }) => message["params"])).toEqual([
      { cmd: "echo out" },
      { lang: "sh", code: "echo out" },
      { path: "a" },
      { path: "a", content: "text" },
      { path: "/" },
    ]);
  });
});

describe("invalid input from an agent", () => {
  it("is counted and skipped when it is malformed", async () => {
    const { agent, client } = await connectedAgent();
    agent.raw(text('garbage\n[1]\n{"jsonrpc":"1.0","id":1,"result":{}}\n{"jsonrpc":"2.0","method":"no.such"}\n'));
    agent.raw(text('{"jsonrpc":"2.0","method":"stream.data","params":{"call":1},"bytes":2}\nabc\n'));
    expect(client.faults.malformedFrames).toBeGreaterThanOrEqual(4);
    await client.ping();
  });

  it("is dropped when it names an unknown call", async () => {
    const { agent, client } = await connectedAgent();
    for (const id of [999, "x", null, {}, [], -1, 1.5]) {
      agent.say({ jsonrpc: "2.0", id, result: {} });
      agent.data({ id }, text("data"));
      agent.credit({ id }, 1_000_000);
      agent.say({ jsonrpc: "2.0", method: "stream.end", params: { call: id } });
    }
    expect(client.faults).toEqual({ malformedFrames: 28, strayMessages: 0 });
    await client.ping();
  });

  it("closes the channel when it is bytes for a call without a stream", async () => {
    const { agent, client } = await connectedAgent();
    const call = rejection(client.readFile("x"));
    await settle();
    agent.data(agent.sent("read_file")[0] ?? {}, text("data"));
    expect(await call).toMatchObject({ code: "unavailable", reason: "agent_window_exceeded" });
    expect(agent.isClosed).toBe(true);
    expect(client.isClosed).toBe(true);
  });
});

describe("a channel that closes", () => {
  it("fails every open call and every later one", async () => {
    const { agent, client } = await connectedAgent();
    const calls = [rejection(client.readFile("a")), rejection(client.listDir("b"))];
    await settle();
    agent.hangUp(new Error("broken pipe"));
    for (const call of calls) expect(await call).toMatchObject({ code: "unavailable", reason: "channel_closed" });
    const error = await rejection(client.ping());
    expect(error).toMatchObject({ reason: "channel_closed" });
    expect(error.message).toContain("broken pipe");
    expect((await client.closed).reason).toBe("channel_closed");
  });

  it.each<[InstanceExit["reason"], string, string]>([
    ["out_of_memory", "gone", "out_of_memory"],
    ["crashed", "gone", "instance_crashed"],
    ["destroyed", "gone", "sandbox_destroyed"],
  ])("because its instance has ended (%s) fails calls with that reason", async (reason, code, errorReason) => {
    const clock = new FakeClock();
    const agent = new ScriptedAgent();
    const exit = Promise.withResolvers<InstanceExit>();
    const client = await agent.client({ clock, exited: exit.promise });
    const call = rejection(client.readFile("a"));
    await settle();
    agent.hangUp();
    await clock.advance(500);
    exit.resolve({ reason, message: "details" });
    const error = await call;
    expect(error).toMatchObject({ code, reason: errorReason, retryable: false });
    expect(error.message).toContain("details");
    if (reason === "out_of_memory") expect(error.hint).toContain("memoryMib");
  });

  it("limits the wait for the end of an instance that keeps running", async () => {
    const clock = new FakeClock();
    const agent = new ScriptedAgent();
    const client = await agent.client({ clock, exited: new Promise(() => {}) });
    const call = rejection(client.readFile("a"));
    await settle();
    agent.hangUp();
    await clock.advance(1000);
    expect(await call).toMatchObject({ reason: "channel_closed" });
  });
});

describe("opening", () => {
  const hello = (id: string) =>
    `{"jsonrpc":"2.0","id":"${id}","result":{"generation":1,"version":"1","boot_id":"b","epoch":0,"methods":[],"languages":[],"processes":[]}}\n`;

  it("refuses an agent of a newer generation, and names both", async () => {
    const agent = new ScriptedAgent();
    agent.on("hello", () => {});
    const opening = rejection(
      AgentClient.open({ channel: agent.channel, needsResync: false }, { randomUuid: () => "mine" }),
    );
    await settle();
    agent.raw(text(hello("mine").replace('"generation":1', `"generation":${PROTOCOL_GENERATION + 1}`)));
    expect(await opening).toMatchObject({
      code: "failed_precondition",
      reason: "agent_too_new",
      details: { found: PROTOCOL_GENERATION + 1, known: PROTOCOL_GENERATION },
    });
  });

  it("ends an earlier caller's frame with padding before its hello", async () => {
    const agent = new ScriptedAgent();
    const client = await agent.client({ needsResync: true });
    expect(agent.faults).toBe(2);
    await client.ping();
  });

  it("skips bytes for an earlier caller, however they are split", async () => {
    for (const chunkBytes of [1, 2, 7, 64, 4096]) {
      const agent = new ScriptedAgent();
      agent.on("hello", () => {});
      const opening = AgentClient.open({ channel: agent.channel, needsResync: true }, { randomUuid: () => "mine" });
      await settle();
      const stale = `half a frame"}\n{"jsonrpc":"2.0","id":1,"result":{"pong":false}}\n${hello("other")}{"jsonrpc":"2.0","id":"mi{{`;
      const bytes = text(stale + hello("mine"));
      for (let at = 0; at < bytes.length; at += chunkBytes) agent.raw(bytes.subarray(at, at + chunkBytes));
      expect((await opening).faults).toEqual({ malformedFrames: 0, strayMessages: 0 });
    }
  });

  it("closes the channel when the agent refuses it", async () => {
    const agent = new ScriptedAgent();
    agent.on("hello", ({ message }) => agent.refuse(message, { code: -32000, message: "no" }));
    expect((await rejection(agent.client())).code).toBe("internal");
    expect(agent.isClosed).toBe(true);
  });

  it("closes the channel when its caller aborts", async () => {
    const agent = new ScriptedAgent();
    agent.on("hello", () => {});
    const abort = new AbortController();
    const opening = rejection(agent.client({ signal: abort.signal }));
    await settle();
    abort.abort();
    expect((await opening).code).toBe("canceled");
    expect(agent.isClosed).toBe(true);
  });
});
