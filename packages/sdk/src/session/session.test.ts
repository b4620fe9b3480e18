import { describe, expect, it } from "vitest";
import { ManualTiming } from "../testing/manual-timing.ts";
import { type ScriptedSession, ScriptedSessions } from "../testing/scripted-sessions.ts";
import { Session, type SessionAttachOptions } from "./session.ts";

const ID = "11111111-2222-4333-8444-555555555555";
const TOKEN = "spt_token";
/** Longer than any back-off. */
const PAUSE_MS = 2_000;

function scripted() {
  const sockets = new ScriptedSessions();
  const timing = new ManualTiming();
  // A refused connection is explained by a request, which these tests do not answer.
  const fetch = () => new Promise<never>(() => {});
  const client = { url: "http://node", apiKey: "spk_key", webSocket: sockets.webSocket, timing, fetch };
  return { sockets, timing, client };
}

async function create() {
  const { sockets, timing, client } = scripted();
  const creating = Session.create({ ...client, memoryMib: 128 });
  sockets.last
    .accept()
    .status("CREATING")
    .reply({ event: "sandbox_id", sandbox_id: ID, token: TOKEN })
    .status("RUNNING");
  return { session: await creating, sockets, timing };
}

async function attach(options: Partial<SessionAttachOptions> = {}) {
  const { sockets, timing, client } = scripted();
  const attaching = Session.attach(ID, { ...client, ...options });
  attaching.catch(() => {});
  return { attaching, sockets, timing };
}

/** The id of the execution that a connection was asked to start. */
const requested = (socket: ScriptedSession, at = 0) => socket.messages[at]?.["execution"] as string;

/** Starts code that has printed `one`. */
async function running() {
  const { session, sockets, timing } = await create();
  const result = session.run("sh", "count");
  result.catch(() => {});
  const execution = requested(sockets.last);
  sockets.last.status("EXECUTION_RUNNING", { execution, offset: 0 }).output(execution, "one", 0);
  return { session, sockets, timing, result, execution };
}

const done = { exit_code: 0, offset: 6 };

describe("a new session", () => {
  it("creates a sandbox with its options, and knows its id, token and status", async () => {
    const { session, sockets } = await create();
    expect(sockets.last).toMatchObject({ path: "/create", query: { memoryMib: "128" }, credential: "spk_key" });
    expect([session.id, session.token, session.status]).toEqual([ID, TOKEN, "SANDBOX_RUNNING"]);
  });

  it("fails with the reason for which the sandbox could not be created", async () => {
    const { sockets, client } = scripted();
    const creating = Session.create(client);
    sockets.last.accept().status("CREATION_ERROR", { message: "too many", reason: "quota_exceeded" }).end(1011);
    await expect(creating).rejects.toMatchObject({ code: "resource_exhausted", reason: "quota_exceeded" });
  });

  it("does not create a second sandbox if the connection breaks before it knows the first one's id", async () => {
    const { sockets, timing, client } = scripted();
    const creating = Session.create(client);
    sockets.last.accept().status("CREATING").end();
    await expect(creating).rejects.toMatchObject({ reason: "node_unreachable" });
    timing.run(PAUSE_MS);
    expect(sockets.all).toHaveLength(1);
  });

  it("asks for the sandbox if the connection breaks during the creation, and creates another if it was undone", async () => {
    const { sockets, timing, client } = scripted();
    const creating = Session.create(client);
    sockets.last.accept().status("CREATING").reply({ event: "sandbox_id", sandbox_id: ID, token: TOKEN }).end();
    timing.run(PAUSE_MS);
    expect(sockets.last).toMatchObject({ path: `/attach/${ID}`, credential: TOKEN });
    sockets.last.accept().reply({ event: "error", message: "it is creating", reason: "invalid_state" }).end(1000);
    timing.run(PAUSE_MS);
    sockets.last.accept().status("NOT_FOUND", { message: "none", reason: "no_such_sandbox" }).end(1000);
    timing.run(PAUSE_MS);
    expect(sockets.last).toMatchObject({ path: "/create", credential: "spk_key" });
    const other = "99999999-2222-4333-8444-555555555555";
    sockets.last.accept().reply({ event: "sandbox_id", sandbox_id: other, token: "spt_other" }).status("RUNNING");
    expect((await creating).id).toBe(other);
  });

  it("fails when no node answers for three seconds", async () => {
    const { sockets, timing, client } = scripted();
    const creating = Session.create(client);
    creating.catch(() => {});
    for (let times = 0; times < 10; times++) {
      sockets.last.end();
      timing.run(500);
    }
    await expect(creating).rejects.toMatchObject({ reason: "node_unreachable" });
  });

  it("is canceled by its signal", async () => {
    const abort = new AbortController();
    const { attaching, sockets } = await attach({ signal: abort.signal });
    abort.abort();
    await expect(attaching).rejects.toMatchObject({ code: "canceled" });
    expect(sockets.last.isClosed).toBe(true);
  });
});

describe("a session that attaches", () => {
  it("waits while the sandbox is restored, and sends code when it runs", async () => {
    const { attaching, sockets } = await attach({ token: TOKEN });
    expect(sockets.last).toMatchObject({ path: `/attach/${ID}`, query: {}, credential: TOKEN });
    sockets.last.accept().status("RESTORING");
    sockets.last.status("RUNNING");
    const session = await attaching;
    session.start("sh", "echo");
    expect(sockets.last.messages).toEqual([{ language: "sh", code: "echo", execution: expect.any(String) }]);
  });

  it("fails at once while another client is attached", async () => {
    const { attaching, sockets } = await attach();
    sockets.last.accept().status("IN_USE", { message: "busy", reason: "sandbox_in_use" }).end(1000);
    await expect(attaching).rejects.toMatchObject({ reason: "sandbox_in_use" });
    expect(sockets.all).toHaveLength(1);
  });

  it("waits as long as its caller allows while another client is attached", async () => {
    const { attaching, sockets, timing } = await attach({ waitMs: 10_000 });
    for (let times = 0; times < 6; times++) {
      sockets.last.accept().status("IN_USE", { message: "busy", reason: "sandbox_in_use" }).end(1000);
      timing.run(PAUSE_MS);
    }
    await expect(attaching).rejects.toMatchObject({ reason: "sandbox_in_use" });
    expect(sockets.all.length).toBeGreaterThan(3);
    expect(sockets.all.every(({ query }) => query["takeover"] === undefined)).toBe(true);
  });

  it("retries while the sandbox's former node does not answer", async () => {
    const { attaching, sockets, timing } = await attach();
    sockets.last.accept().reply({ event: "error", message: "silent", reason: "owner_unreachable" }).end(1000);
    timing.run(PAUSE_MS);
    sockets.last.accept().status("RUNNING");
    expect((await attaching).isAttached).toBe(true);
  });

  it("continues an execution that an earlier program has read in part", async () => {
    const resume = { execution: "e1", next: "3~stdout.2.c3" };
    const { attaching, sockets } = await attach({ token: TOKEN, resume });
    expect(sockets.last.query).toEqual({ execution: "e1", offset: "3~stdout.2.c3" });
    sockets.last.accept().status("RUNNING").status("EXECUTION_RUNNING", { execution: "e1", offset: 3 });
    const { execution } = await attaching;
    sockets.last.output("e1", "two", 3).status("EXECUTION_DONE", { execution: "e1", ...done });
    const texts: string[] = [];
    for await (const { text } of execution ?? []) texts.push(text);
    expect([texts, await execution?.wait()]).toEqual([["two"], { exitCode: 0, message: undefined }]);
  });
});

describe("a session that loses its connection", () => {
  it("takes over with its token, and continues the output after the last event that arrived", async () => {
    const { sockets, timing, result, execution } = await running();
    sockets.last.end();
    timing.run(PAUSE_MS);
    expect(sockets.last).toMatchObject({ path: `/attach/${ID}`, credential: TOKEN });
    expect(sockets.last.query).toEqual({ takeover: "true", execution, offset: "3" });
    sockets.last.accept().status("RUNNING").status("EXECUTION_RUNNING", { execution, offset: 3 });
    sockets.last.output(execution, "two", 3).status("EXECUTION_DONE", { execution, ...done });
    expect(await result).toMatchObject({ stdout: "onetwo", exitCode: 0, truncated: false });
    expect(sockets.last.messages).toEqual([]);
  });

  it("reconnects at once after a move, without a takeover", async () => {
    const { sockets, timing, execution } = await running();
    sockets.last.status("MOVED", { message: "moved" }).end(1012);
    timing.run(0);
    expect(sockets.all).toHaveLength(2);
    expect(sockets.last.query).toEqual({ execution, offset: "3" });
    // A node that keeps sending it away is not asked without a pause.
    sockets.last.accept().status("RUNNING").status("MOVED").end(1012);
    timing.run(0);
    expect(sockets.all).toHaveLength(2);
  });

  it("sends code again, with the same id, only if the node does not know it", async () => {
    const { session, sockets, timing } = await create();
    const result = session.run("sh", "once");
    const execution = requested(sockets.last);
    sockets.last.end();
    timing.run(PAUSE_MS);
    expect(sockets.last.query).toMatchObject({ execution, offset: "0" });
    sockets.last.accept().status("RUNNING");
    expect(sockets.last.messages).toEqual([]);
    sockets.last.status("EXECUTION_NOT_FOUND", { execution, message: "unknown", reason: "no_such_execution" });
    expect(sockets.last.messages).toEqual([{ language: "sh", code: "once", execution }]);
    sockets.last.status("EXECUTION_RUNNING", { execution, offset: 0 }).output(execution, "ran", 0);
    sockets.last.status("EXECUTION_DONE", { execution, exit_code: 0, offset: 3 });
    expect((await result).stdout).toBe("ran");
  });

  it("does not run code a second time if the node has lost it", async () => {
    const { sockets, timing, result, execution } = await running();
    sockets.last.end();
    timing.run(PAUSE_MS);
    sockets.last.accept().status("RUNNING");
    sockets.last.status("EXECUTION_NOT_FOUND", { execution, message: "undone", reason: "rolled_back" });
    await expect(result).rejects.toMatchObject({ code: "data_loss", reason: "rolled_back" });
    expect(sockets.last.messages).toEqual([]);
  });

  it("sends code that was started meanwhile when it is attached again", async () => {
    const { session, sockets, timing } = await create();
    sockets.last.end();
    session.start("sh", "later");
    timing.run(PAUSE_MS);
    expect(sockets.last.query).toEqual({ takeover: "true" });
    sockets.last.accept().status("RUNNING");
    expect(sockets.last.messages).toMatchObject([{ code: "later" }]);
  });

  it("gives up when another client stays attached for longer than it retries", async () => {
    const { session, sockets, timing, result } = await running();
    sockets.last.status("MOVED").end(1012);
    for (let times = 0; times < 40; times++) {
      timing.run(PAUSE_MS);
      sockets.last.accept().status("IN_USE", { message: "busy", reason: "sandbox_in_use" }).end(1000);
    }
    await expect(result).rejects.toMatchObject({ reason: "sandbox_in_use" });
    expect(await session.closed).toMatchObject({ reason: "sandbox_in_use" });
  });

  it("does not return after another client has taken over", async () => {
    const { session, sockets, timing, result } = await running();
    sockets.last.reply({ event: "error", message: "taken", reason: "session_taken_over" }).end(1008);
    await expect(result).rejects.toMatchObject({ reason: "session_taken_over" });
    expect(await session.closed).toMatchObject({ reason: "session_taken_over" });
    timing.run(PAUSE_MS);
    expect(sockets.all).toHaveLength(1);
    expect(() => session.start("sh", "echo")).toThrow(expect.objectContaining({ reason: "session_taken_over" }));
  });

  it("asks a silent node for an answer, and replaces a connection that stays silent", async () => {
    const { sockets, timing } = await running();
    timing.run(15_000);
    timing.run(15_000);
    expect(sockets.last.messages.at(-1)).toEqual({ ping: true });
    sockets.last.reply({ event: "pong" });
    timing.run(10_000);
    expect(sockets.all).toHaveLength(1);
    for (let times = 0; times < 3; times++) timing.run(15_000);
    expect(sockets.all[1]?.query).toMatchObject({ takeover: "true" });
  });
});

describe("code of a session", () => {
  it("runs one piece at a time", async () => {
    const { session } = await running();
    await expect(session.run("sh", "second")).rejects.toMatchObject({ reason: "execution_running" });
  });

  it("is sent although the end of an earlier client's code has not arrived, and runs if the node accepts it", async () => {
    const { attaching, sockets } = await attach();
    sockets.last.accept().status("RUNNING").status("EXECUTION_RUNNING", { execution: "earlier", offset: 0 });
    const session = await attaching;
    const result = session.run("sh", "next");
    const execution = requested(sockets.last);
    sockets.last
      .status("EXECUTION_DONE", { execution: "earlier", ...done })
      .status("EXECUTION_RUNNING", { execution, offset: 0 })
      .output(execution, "next", 0)
      .status("EXECUTION_DONE", { execution, ...done });
    expect((await result).stdout).toBe("next");
    const refused = session.run("sh", "third");
    const reason = "execution_running";
    sockets.last.status("EXECUTION_ERROR", { execution: requested(sockets.last, 1), message: "it runs code", reason });
    await expect(refused).rejects.toMatchObject({ reason });
  });

  it("is refused without a message if it is larger than the node accepts", async () => {
    const { session, sockets } = await create();
    const code = "x".repeat(16 * 1024 * 1024);
    await expect(session.run("sh", code)).rejects.toMatchObject({ reason: "body_too_large" });
    expect([sockets.last.messages, session.execution]).toEqual([[], undefined]);
  });

  it("has truncated output if the node dropped some", async () => {
    const { sockets, result, execution } = await running();
    sockets.last.reply({ event: "stderr", data: "x", execution, offset: 9, next: "10", dropped: 6 });
    sockets.last.status("EXECUTION_DONE", { execution, exit_code: 137, offset: 10, message: "killed" });
    expect(await result).toEqual({ stdout: "one", stderr: "x", exitCode: 137, message: "killed", truncated: true });
  });

  it("fails with the node's reason, and leaves the session usable", async () => {
    const { session, sockets } = await create();
    const result = session.run("klingon", "x");
    const about = { execution: requested(sockets.last), message: "none", reason: "unknown_language" };
    sockets.last.status("EXECUTION_ERROR", about);
    await expect(result).rejects.toMatchObject({ code: "invalid_argument", reason: "unknown_language" });
    session.start("sh", "echo");
    expect(sockets.last.messages).toHaveLength(2);
  });

  it("of an earlier client is passed to listeners, and is the session's execution until it ends", async () => {
    const { attaching, sockets } = await attach({ token: TOKEN });
    sockets.last.accept().status("RUNNING");
    const session = await attaching;
    const found: string[] = [];
    const stop = session.on("execution", ({ id }) => found.push(id));
    sockets.last.status("EXECUTION_RUNNING", { execution: "left", offset: 0 });
    expect([found, session.execution?.id]).toEqual([["left"], "left"]);
    sockets.last.status("EXECUTION_DONE", { execution: "left", ...done });
    stop();
    sockets.last.status("EXECUTION_RUNNING", { execution: "other", offset: 0 });
    expect([found, session.execution?.id]).toEqual([["left"], "other"]);
  });

  it("ends with client_closed when the session is closed, and the connection closes", async () => {
    const { session, sockets, result } = await running();
    await session.close();
    await expect(result).rejects.toMatchObject({ reason: "client_closed" });
    expect([sockets.last.isClosed, session.isAttached, await session.closed]).toEqual([true, false, undefined]);
  });
});
