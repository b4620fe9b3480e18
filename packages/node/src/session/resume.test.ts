import { MockProvider } from "@sandpiper/providers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type SocketNode, startSocketNode } from "../socket/testing/socket-node.ts";
import type { TestClient } from "../socket/testing/test-client.ts";
import { begun, done, executed, printed, status } from "./testing/session-messages.ts";

let node: SocketNode;
let provider: MockProvider;
beforeEach(async () => {
  provider = new MockProvider();
  node = await startSocketNode({ provider });
});
afterEach(() => node[Symbol.asyncDispose]());

const isStatus = (name: string) => (message: object) => "status" in message && message.status === `SANDBOX_${name}`;
const isOutput = (message: object) => "data" in message;

async function create() {
  const client = node.client("/create");
  const [, named] = await client.take(3);
  const { sandbox_id: id, token } = named as unknown as { readonly sandbox_id: string; readonly token: string };
  const live = node.access.open(node.owner, id, { readOnly: false });
  await live.files.write("/shut", "");
  return { client, id, token, live };
}

/** Attaches like a client whose connection broke without a close. */
function takeOver({ id, token }: { readonly id: string; readonly token: string }, query = ""): TestClient {
  return node.client(`/attach/${id}?takeover=true${query}`, { credential: token });
}

/** Code that writes, waits until a file is removed, and writes again. */
const GATED = "echo one; while test -e /shut; do sleep 0.01; done; echo two; exit 3";

describe("a client that resumes an execution", () => {
  it("receives only what follows the last event that it received, and the end", async () => {
    const sandbox = await create();
    await sandbox.client.send({ language: "sh", code: GATED, execution: "e1" });
    const [, output] = await sandbox.client.take(2);
    expect(output).toEqual({ event: "stdout", data: "one\n", execution: "e1", offset: 0, next: "4" });
    const next = takeOver(sandbox, "&execution=e1&offset=4");
    expect(await next.take(2)).toEqual([status("RUNNING"), begun(4)]);
    await sandbox.live.files.remove("/shut");
    expect(await next.take(2)).toEqual([printed("two\n", { offset: 4 }), done(8, 3)]);
  });

  it("receives everything again from offset 0, although an earlier client received it", async () => {
    const sandbox = await create();
    await sandbox.client.send({ language: "sh", code: "echo one", execution: "e1" });
    // Without an answer to the node's ping, the node does not know that the client has the end.
    sandbox.client.webSocket.pause();
    await expect.poll(async () => (await sandbox.live.processes()).map(({ exitCode }) => exitCode)).toEqual([0]);
    const next = takeOver(sandbox, "&execution=e1&offset=0");
    expect(await next.take(4)).toEqual([status("RUNNING"), ...executed("one\n")]);
  });

  it("learns that the node does not know the execution, and can then run code", async () => {
    const { client, id } = await create();
    await client.close();
    const next = node.client(`/attach/${id}?execution=e9&offset=7`);
    const about = { execution: "e9", reason: "no_such_execution", message: expect.stringContaining("e9") };
    expect(await next.take(2)).toEqual([status("RUNNING"), status("EXECUTION_NOT_FOUND", about)]);
    await next.send({ language: "sh", code: "echo fine", execution: "e9" });
    expect(await next.take(3)).toEqual(executed("fine\n"));
  });

  it("learns about another execution that it did not ask for, and receives its output", async () => {
    const sandbox = await create();
    await sandbox.client.send({ language: "sh", code: GATED, execution: "e2" });
    await sandbox.client.take(2);
    const next = takeOver(sandbox, "&execution=e1&offset=4");
    expect(await next.take(3)).toEqual([
      status("RUNNING"),
      status("EXECUTION_NOT_FOUND", { execution: "e1", reason: "no_such_execution", message: expect.any(String) }),
      status("EXECUTION_RUNNING", { execution: "e2", offset: 4 }),
    ]);
  });

  it("is refused with a malformed offset, and the session of the first client continues", async () => {
    const { client, id } = await create();
    const next = node.client(`/attach/${id}?execution=e1&offset=soon`);
    const message = expect.stringContaining("offset");
    expect(await next.next()).toEqual({ event: "error", message, reason: "invalid_query" });
    expect((await next.closed).code).toBe(1000);
    await client.send({ language: "sh", code: "echo fine" });
    expect(await client.take(3)).toEqual(executed("fine\n"));
  });

  it("learns of a rollback that has undone the output that it has, and receives the restored output", async () => {
    const { client, id, live } = await create();
    await client.send({ language: "sh", code: GATED, execution: "e1" });
    await client.take(2);
    await node.checkpoints.create(node.owner, id, {});
    await live.files.remove("/shut");
    const end = (await client.until(isOutput)).at(-1);
    expect(end).toMatchObject({ data: "two\n", next: "8" });
    await node.checkpoints.rollback(node.owner, id, {});
    await client.closed;

    const next = node.client(`/attach/${id}?execution=e1&offset=8`);
    const messages = await next.until(isOutput);
    expect(messages.filter(isStatus("EXECUTION_NOT_FOUND"))).toEqual([
      status("EXECUTION_NOT_FOUND", { execution: "e1", reason: "rolled_back", message: expect.any(String) }),
    ]);
    // Its position now names the history that it belongs to.
    expect(messages.at(-1)).toEqual({ ...printed("one\n"), next: "4~r1" });
    await next.close();
    const later = node.client(`/attach/${id}?execution=e1&offset=4~r1`);
    expect(await later.take(2)).toEqual([status("RUNNING"), begun(4)]);
  });

  it("learns that its offset is beyond the end of the output, and receives the output not yet sent", async () => {
    const sandbox = await create();
    await sandbox.client.send({ language: "sh", code: GATED, execution: "e1" });
    await sandbox.client.take(2);
    const next = takeOver(sandbox, "&execution=e1&offset=5");
    expect(await next.take(3)).toEqual([
      status("RUNNING"),
      status("EXECUTION_NOT_FOUND", { execution: "e1", reason: "rolled_back", message: expect.any(String) }),
      begun(4),
    ]);
  });

  it("learns how many bytes the journal dropped", async () => {
    const sandbox = await create();
    const [kept, written] = [64 * 1024 * 1024, 65 * 1024 * 1024];
    await sandbox.live.files.write("/big", Buffer.alloc(written, "x"));
    await sandbox.client.send({ language: "sh", code: "cat /big", execution: "e1" });
    sandbox.client.terminate();
    await expect.poll(async () => (await sandbox.live.processes()).map(({ exitCode }) => exitCode)).toEqual([0]);
    const next = takeOver(sandbox, "&execution=e1&offset=0");
    const [, , first] = await next.take(3);
    expect(first).toMatchObject({ dropped: written - kept, offset: written - kept });
    const rest = await next.until(isStatus("EXECUTION_DONE"));
    expect(rest.filter((message) => "dropped" in message)).toEqual([]);
    expect(rest.at(-1)).toMatchObject({ offset: written, message: expect.stringContaining("dropped") });
  });
});

describe("code with an id that the client chose", () => {
  it("runs once, even if the client sends it again on the same connection or on the next", async () => {
    const sandbox = await create();
    const request = { language: "sh", code: `echo ran >> /ran; ${GATED}`, execution: "e1" };
    await sandbox.client.send(request);
    await sandbox.client.send(request);
    expect(await sandbox.client.take(2)).toEqual([begun(), printed("one\n")]);
    const next = takeOver(sandbox);
    expect(await next.take(2)).toEqual([status("RUNNING"), begun(4)]);
    await next.send(request);
    await sandbox.live.files.remove("/shut");
    expect(await next.take(2)).toEqual([printed("two\n", { offset: 4 }), done(8, 3)]);
    expect((await sandbox.live.exec({ command: "cat /ran" })).stdout).toBe("ran\n");
  });

  it("is refused while other code runs, with its id", async () => {
    const { client } = await create();
    await client.send({ language: "sh", code: GATED, execution: "e1" });
    await client.take(2);
    await client.send({ language: "sh", code: "echo no", execution: "e2" });
    const about = { execution: "e2", reason: "execution_running", message: expect.any(String) };
    expect(await client.next()).toEqual(status("EXECUTION_ERROR", about));
  });

  it.each(["", "../x", "a b", "x".repeat(57)])("is refused if the id is %j", async (execution) => {
    const { client } = await create();
    await client.send({ language: "sh", code: "echo no", execution });
    expect(await client.next()).toMatchObject(status("EXECUTION_ERROR", { reason: "malformed_request" }));
  });
});

describe("code that an earlier client left", () => {
  it("does not keep the next client from running code, if it has ended", async () => {
    const sandbox = await create();
    await sandbox.client.send({ language: "sh", code: "echo left", execution: "e1" });
    sandbox.client.terminate();
    await expect.poll(async () => (await sandbox.live.processes()).map(({ exitCode }) => exitCode)).toEqual([0]);
    const next = takeOver(sandbox);
    await next.send({ language: "sh", code: "echo mine", execution: "e2" });
    const messages = await next.take(7);
    expect(messages).toEqual([status("RUNNING"), ...executed("left\n"), ...executed("mine\n")]);
  });
});

describe("a session on a bad connection", () => {
  it("is taken over at once although the former client does not read its output", async () => {
    const sandbox = await create();
    const length = 30 * 1024 * 1024;
    await sandbox.live.files.write("/big", Buffer.alloc(length, "x"));
    sandbox.client.webSocket.pause();
    await sandbox.client.send({ language: "sh", code: "cat /big", execution: "e1" });
    await expect.poll(async () => (await sandbox.live.processes())[0]?.endOffset).toBeGreaterThan(8 * 1024 * 1024);
    const next = takeOver(sandbox, "&execution=e1&offset=0");
    const messages = await next.until(isStatus("EXECUTION_DONE"));
    expect(messages.reduce((sum, message) => sum + ("data" in message ? `${message.data}`.length : 0), 0)).toBe(length);
  });

  it("is answered when it pings, also before the sandbox runs", async () => {
    provider.faults.bootDelayMs = 60_000;
    const client = node.client("/create");
    await client.take(2);
    await client.send({ ping: true });
    expect(await client.next()).toEqual({ event: "pong" });
  });
});
