import { SandboxError } from "@sandpiper/core";
import { type SandboxId, sessionEventSchema } from "@sandpiper/protocol";
import { MockProvider } from "@sandpiper/providers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type SocketNode, startSocketNode } from "../socket/testing/socket-node.ts";
import type { TestClient } from "../socket/testing/test-client.ts";
import { watchHolds } from "../socket/testing/watch-holds.ts";
import { begun, done, executed, printed, status } from "./testing/session-messages.ts";

let node: SocketNode;
let provider: MockProvider;
beforeEach(async () => {
  provider = new MockProvider();
  node = await startSocketNode({ provider });
});
afterEach(() => node[Symbol.asyncDispose]());

const run = (code: string, language = "sh") => ({ language, code });
const isStatus = (name: string) => (message: object) => "status" in message && message.status === `SANDBOX_${name}`;
const text = (messages: readonly object[], source = "stdout") =>
  messages
    .map((message) => ("data" in message && "event" in message && message.event === source ? message.data : ""))
    .join("");

/** Creates a sandbox with a client. */
async function create(query = "") {
  const client = node.client(`/create${query}`);
  const [, named] = await client.take(3);
  const { sandbox_id: id, token } = named as unknown as { readonly sandbox_id: string; readonly token: string };
  return { client, id, token, live: node.access.open(node.owner, id, { readOnly: false }) };
}

/** Runs code; returns what it printed. */
async function outputOf(client: TestClient, code: string): Promise<string> {
  await client.send(run(code));
  return text(await client.until(isStatus("EXECUTION_DONE")));
}

async function attach(id: string): Promise<TestClient> {
  const client = node.client(`/attach/${id}`);
  expect(await client.next()).toEqual(status("RUNNING"));
  return client;
}

describe("WS /create", () => {
  it("announces the creation, then the id and the token, then that the sandbox runs", async () => {
    const client = node.client("/create?memoryMib=128&name=mine&ttlMs=60000");
    const messages = await client.take(3);
    for (const message of messages) sessionEventSchema.parse(message);
    expect(messages).toEqual([
      status("CREATING"),
      { event: "sandbox_id", sandbox_id: expect.any(String), token: expect.stringMatching(/^spt_/) },
      status("RUNNING"),
    ]);
    expect(node.sandboxes.list(node.owner, {}).items).toMatchObject([{ memoryMib: 128, name: "mine", ttlMs: 60_000 }]);
  });

  it("reports why the creation failed, and closes the connection", async () => {
    provider.faults.bootFailure = SandboxError.fromFields({
      code: "unavailable",
      reason: "broken",
      message: "the boot broke",
    });
    const client = node.client("/create");
    const messages = await client.take(3);
    expect(messages[0]).toEqual(status("CREATING"));
    expect(messages[2]).toEqual(
      status("CREATION_ERROR", { message: expect.stringContaining("the boot broke"), reason: "broken" }),
    );
    expect(await client.closed).toEqual({ code: 1011, reason: "broken" });
  });

  it.each(["?memoryMib=0", "?memoryMib=lots", "?memoryMib=", "?colour=red", "?name=a&name=b"])(
    "refuses %s, and names the parameter",
    async (query) => {
      const client = node.client(`/create${query}`);
      const message = expect.stringMatching(/memoryMib|colour|name/);
      const failed = status("CREATION_ERROR", { message, reason: "invalid_query" });
      expect(await client.take(2)).toEqual([status("CREATING"), failed]);
      await client.closed;
      expect(node.records.live()).toEqual([]);
    },
  );

  it("undoes the creation when the client leaves", async () => {
    provider.faults.bootDelayMs = 60_000;
    const client = node.client("/create");
    await client.take(2);
    await client.close();
    await expect.poll(() => [provider.size, node.records.live()]).toEqual([0, []]);
  });

  it("refuses code until the sandbox runs", async () => {
    provider.faults.bootDelayMs = 60_000;
    const client = node.client("/create");
    await client.take(2);
    await client.send(run("echo hello"));
    const message = expect.stringContaining("not running");
    expect(await client.next()).toEqual(status("EXECUTION_ERROR", { message, reason: "not_ready" }));
  });
});

describe("running code in a session", () => {
  it("reports the start, the output, and the exit code", async () => {
    const { client, live } = await create();
    await client.send(run("echo out; echo err >&2; exit 7"));
    expect(await client.take(4)).toEqual([
      begun(),
      printed("out\n"),
      printed("err\n", { event: "stderr", offset: 4 }),
      done(8, 7),
    ]);
    await expect.poll(() => live.processes()).toEqual([]);
    expect(node.audit).toMatchObject([
      { operation: "createSandbox", sandboxId: live.id, status: 201 },
      { operation: "startProcess", sandboxId: live.id, status: 201 },
    ]);
  });

  it("gives the code the sandbox's environment and working directory", async () => {
    const { id } = await node.sandboxes.create(node.owner, { env: { GREETING: "hello" }, cwd: "/tmp" });
    const client = await attach(id);
    expect(await outputOf(client, "echo $GREETING; pwd")).toBe("hello\n/tmp\n");
  });

  it("rejects a second piece of code while the first one runs, without disturbing it", async () => {
    const { client } = await create();
    await client.send(run("sleep 0.2; echo first"));
    await client.send(run("echo second"));
    const messages = await client.until(isStatus("EXECUTION_DONE"));
    const message = expect.stringContaining("already runs code");
    expect(messages).toContainEqual(status("EXECUTION_ERROR", { message, reason: "execution_running" }));
    expect(text(messages)).toBe("first\n");
    expect(await outputOf(client, "echo third")).toBe("third\n");
  });

  it.each([
    "no json",
    "null",
    "{}",
    '{"language":"sh"}',
    '{"language":1,"code":"echo"}',
    '{"language":"sh","code":"echo","extra":1}',
  ])("answers the malformed request %s with an error, and stays usable", async (request) => {
    const { client } = await create();
    await client.send(request);
    const message = expect.stringContaining("malformed");
    expect(await client.next()).toEqual(status("EXECUTION_ERROR", { message, reason: "malformed_request" }));
    expect(await outputOf(client, "echo fine")).toBe("fine\n");
  });

  it("lists the sandbox's languages when it lacks the requested one, and stays usable", async () => {
    const { client } = await create();
    await client.send(run("say hello", "klingon"));
    const message = expect.stringMatching(/klingon.*languages in this sandbox: sh/);
    const about = { message, reason: "unknown_language", execution: expect.any(String) };
    expect(await client.next()).toEqual(status("EXECUTION_ERROR", about));
    expect(await outputOf(client, "echo fine")).toBe("fine\n");
  });

  it("never breaks a character that is split between two chunks", async () => {
    const { client, live } = await create();
    await live.files.write("/a", Buffer.from("né€𝄞", "utf8").subarray(0, 5));
    await live.files.write("/b", Buffer.from("né€𝄞", "utf8").subarray(5));
    await client.send(run("cat /a; echo between >&2; cat /b"));
    const messages = await client.until(isStatus("EXECUTION_DONE"));
    expect(text(messages)).toBe("né€𝄞");
    expect(text(messages, "stderr")).toBe("between\n");
    expect(await outputOf(client, "cat /a")).toBe("né\ufffd");
  });

  it("delivers long output completely to a slow client", async () => {
    const { client, live } = await create();
    const lines = Array.from({ length: 100_000 }, (_, n) => `${n}\n`).join("");
    await live.files.write("/lines", lines);
    await client.send(run("cat /lines"));
    client.webSocket.pause();
    await live.start({ command: "true" });
    client.webSocket.resume();
    expect(text(await client.until(isStatus("EXECUTION_DONE"))) === lines).toBe(true);
  });
});

describe("WS /attach/<id>", () => {
  it("attaches to the running sandbox with its state", async () => {
    const { client, id, live } = await create();
    await live.files.write("/state", "kept");
    await client.close();
    const next = await attach(id);
    await next.send(run("cat /state"));
    expect(await next.take(3)).toEqual(executed("kept"));
  });

  it("answers not found for a sandbox that does not exist, is destroyed, or belongs to another tenant", async () => {
    const { client: first, id } = await create();
    const other = node.makeKey({ tenant: "other" }).key;
    const { resource } = await node.createSandbox();
    await node.sandboxes.remove(node.owner, resource.id);
    const missing = "00000000-0000-4000-8000-000000000000";
    for (const [path, credential] of [
      [missing, node.ownerKey],
      ["no-id", node.ownerKey],
      ["..%00", node.ownerKey],
      [resource.id, node.ownerKey],
      [id, other],
    ] as const) {
      const client = node.client(`/attach/${path}`, { credential });
      expect(await client.next()).toEqual(
        status("NOT_FOUND", { message: expect.any(String), reason: expect.any(String) }),
      );
      expect((await client.closed).code).toBe(1000);
    }
    expect(first.webSocket.readyState).toBe(first.webSocket.OPEN);
  });

  it("restores nothing for a client that it refuses", async () => {
    const { client, id, token } = await create();
    const { token: otherToken } = await node.createSandbox();
    await node.checkpoints.pause(node.owner, id);
    await client.closed;
    const forged = `${token.slice(0, -4)}${token.endsWith("AAAA") ? "BBBB" : "AAAA"}`;
    expect((await node.client(`/attach/${id}`, { credential: forged }).refused).status).toBe(401);
    for (const credential of [node.makeKey({ tenant: "other" }).key, otherToken]) {
      const client = node.client(`/attach/${id}?takeover=true`, { credential });
      expect(await client.next()).toEqual(
        status("NOT_FOUND", { message: expect.any(String), reason: expect.any(String) }),
      );
      await client.closed;
    }
    expect([node.records.get(id as SandboxId)?.state, provider.size]).toEqual(["paused", 1]);
  });

  it("refuses a second client until the first one has left", async () => {
    const { client, id } = await create();
    const second = node.client(`/attach/${id}`);
    expect(await second.next()).toEqual(status("IN_USE", { message: expect.any(String), reason: "sandbox_in_use" }));
    await second.closed;
    expect(await outputOf(client, "echo undisturbed")).toBe("undisturbed\n");
    await client.close();
    await attach(id);
  });

  it("keeps the sandbox from becoming idle while the client is attached", async () => {
    const { resource, live } = await node.createSandbox();
    const held = watchHolds(live);
    const client = await attach(resource.id);
    for (let piece = 0; piece < 2; piece++) {
      await client.send(run("true"));
      await client.until(isStatus("EXECUTION_DONE"));
    }
    expect(held.filter((each) => each !== "-process")).toEqual(["+client", "+process", "+process"]);
    await client.close();
    await expect.poll(() => held).toContain("-client");
  });

  it("lets a client with the sandbox's token take over", async () => {
    const { client, id, token } = await create();
    await client.send(run("echo before; sleep 0.3; echo after"));
    await client.take(2);
    const keyed = node.client(`/attach/${id}?takeover=true`);
    const message = expect.stringContaining("token");
    expect(await keyed.next()).toEqual(status("IN_USE", { message, reason: "sandbox_in_use" }));
    const holder = node.client(`/attach/${id}?takeover=true`, { credential: token });
    expect(await holder.until(isStatus("EXECUTION_DONE"))).toEqual([
      status("RUNNING"),
      ...executed("after\n", { offset: 7 }),
    ]);
    const reason = "session_taken_over";
    expect(await client.next()).toEqual({ event: "error", message: expect.stringContaining("taken over"), reason });
    expect((await client.closed).code).toBe(1008);
  });

  it("keeps code running without a client, and sends the next one the remaining output and exit code", async () => {
    const { client, id } = await create();
    await client.send(run("echo one; sleep 0.3; echo two"));
    await client.take(2);
    await client.close();
    const next = await attach(id);
    expect(await next.take(3)).toEqual(executed("two\n", { offset: 4 }));
    expect(await outputOf(next, "echo three")).toBe("three\n");
  });

  it("reports to the next client that the code has ended if the previous one did not receive it", async () => {
    const { client, id, live } = await create();
    await client.send(run("sleep 0.1; echo done; exit 3"));
    await client.next();
    client.terminate();
    await expect.poll(async () => (await live.processes()).map(({ exitCode }) => exitCode)).toEqual([3]);
    const next = await attach(id);
    expect(await next.take(3)).toEqual(executed("done\n", { exitCode: 3 }));
    await expect.poll(() => live.processes()).toEqual([]);
    await next.close();
    const last = await attach(id);
    expect(await outputOf(last, "echo fresh")).toBe("fresh\n");
  });

  it("finds code that was started before a restart of the node", async () => {
    const { resource, live } = await node.createSandbox();
    await live.startCode({ language: "sh", code: "echo before; sleep 0.2; echo after" }, "session-earlier");
    const client = await attach(resource.id);
    const messages = await client.until(isStatus("EXECUTION_DONE"));
    expect(messages[0]).toEqual(begun());
    expect(text(messages)).toBe("before\nafter\n");
  });

  it("reports the failed execution and then the end when the sandbox is destroyed", async () => {
    const { client, id } = await create();
    await client.send(run("sleep 60"));
    await client.next();
    await node.sandboxes.remove(node.owner, id);
    const reason = "sandbox_destroyed";
    expect(await client.take(2)).toEqual([
      status("EXECUTION_ERROR", {
        message: expect.stringContaining("destroyed"),
        reason,
        execution: expect.any(String),
      }),
      status("DELETED", { message: expect.any(String) }),
    ]);
    expect((await client.closed).code).toBe(1000);
  });

  it("reports why the sandbox has crashed", async () => {
    const { client, live } = await create();
    provider.instance(live.id).crash();
    const reason = "instance_crashed";
    expect(await client.next()).toEqual({ event: "error", message: expect.stringContaining("ended"), reason });
    expect((await client.closed).code).toBe(1011);
  });

  it("asks its client to attach again when the sandbox has crashed and has a checkpoint", async () => {
    const { client, id } = await create();
    await client.send(run("echo saved > file"));
    await client.until(isStatus("EXECUTION_DONE"));
    const checkpoint = await node.checkpoints.create(node.owner, id, {});
    await client.send(run("sleep 1000"));
    await client.until(isStatus("EXECUTION_RUNNING"));
    provider.instance(id as SandboxId).crash();
    expect(await client.take(2)).toEqual([
      status("EXECUTION_ERROR", {
        message: expect.stringContaining("failed"),
        reason: "instance_crashed",
        execution: expect.any(String),
      }),
      status("MOVED", { message: expect.stringContaining("newest checkpoint") }),
    ]);
    expect((await client.closed).code).toBe(1012);
    const again = node.client(`/attach/${id}`);
    expect((await again.until(isStatus("RUNNING"))).at(-1)).toMatchObject({
      rolledBackTo: { checkpoint: checkpoint.id },
    });
    expect(await outputOf(again, "cat file")).toBe("saved\n");
  });
});

describe("a session whose sandbox is saved", () => {
  it("reports the checkpoint and stays usable", async () => {
    const { client, id } = await create();
    await node.checkpoints.create(node.owner, id, {});
    expect(await client.take(2)).toEqual([status("CHECKPOINTING"), status("CHECKPOINTED")]);
    expect(await outputOf(client, "echo still")).toBe("still\n");
  });

  it("reports that the sandbox still runs when the checkpoint fails", async () => {
    const { client, id } = await create();
    provider.faults.checkpointFailure = SandboxError.fromFields({ code: "internal", reason: "no", message: "no" });
    await node.checkpoints.create(node.owner, id, {}).catch(() => {});
    expect(await client.take(2)).toEqual([status("CHECKPOINTING"), status("RUNNING")]);
  });

  it("ends at a pause, and the next client to attach restores the sandbox", async () => {
    const { client, id } = await create();
    await node.checkpoints.pause(node.owner, id);
    const messages = await client.take(3);
    expect(messages).toEqual([
      status("CHECKPOINTING"),
      status("CHECKPOINTED"),
      status("MOVED", { message: expect.stringContaining(id) }),
    ]);
    const next = node.client(`/attach/${id}`);
    expect(await next.take(2)).toEqual([status("RESTORING"), status("RUNNING")]);
  });

  it("reports that running code is lost if the provider saves only files", async () => {
    await node[Symbol.asyncDispose]();
    provider = new MockProvider({ checkpoint: "filesystem" });
    node = await startSocketNode({ provider });
    const { client, id } = await create();
    await client.send(run("echo kept > file; sleep 100"));
    await client.until(isStatus("EXECUTION_RUNNING"));
    await node.checkpoints.pause(node.owner, id);
    const about = { message: expect.stringContaining("lost"), reason: "process_lost", execution: expect.any(String) };
    const lost = status("EXECUTION_ERROR", about);
    expect(await client.until(isStatus("MOVED"))).toContainEqual(lost);
    const next = node.client(`/attach/${id}`);
    expect(await next.take(2)).toEqual([status("RESTORING"), status("RUNNING")]);
    expect(await outputOf(next, "cat file")).toBe("kept\n");
  });
});
