import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startGvisorNode } from "../socket/testing/gvisor-node.ts";
import type { SocketNode } from "../socket/testing/socket-node.ts";
import { begun, done, executed, printed, status } from "./testing/session-messages.ts";

// The two sequences of docs/sockets.md, message by message, with real sandboxes.
let node: SocketNode;
let id: string;
let token: string;
beforeAll(async () => {
  node = await startGvisorNode();
});
afterAll(() => node[Symbol.asyncDispose]());

describe("a session on gVisor", () => {
  it("sends the documented messages for create and execute", async () => {
    const client = node.client("/create");
    expect(await client.next()).toEqual(status("CREATING"));
    const named = (await client.next()) as Record<string, unknown>;
    expect(named).toEqual({ event: "sandbox_id", sandbox_id: expect.any(String), token: expect.any(String) });
    [id, token] = [named["sandbox_id"] as string, named["token"] as string];
    expect(await client.next()).toEqual(status("RUNNING"));

    await client.send({ language: "python", code: "print('hello')" });
    expect(await client.take(3)).toEqual(executed("hello\n"));

    await client.send({ language: "bash", code: "echo 'world' | tee ~/kept" });
    expect(await client.take(3)).toEqual(executed("world\n"));

    const second = node.client(`/attach/${id}`);
    expect(await second.next()).toEqual(status("IN_USE", { message: expect.any(String), reason: "sandbox_in_use" }));
    await second.closed;
    expect(await client.close()).toMatchObject({ code: 1005 });
  });

  it("sends the documented messages for attach and execute", async () => {
    const client = node.client(`/attach/${id}`, { credential: token });
    expect(await client.next()).toEqual(status("RUNNING"));

    await client.send({ language: "python", code: "print('hello from attached client')" });
    expect(await client.take(3)).toEqual(executed("hello from attached client\n"));

    await client.send({ language: "bash", code: "cat ~/kept; echo wrong >&2; exit 3" });
    const messages = await client.take(4);
    expect(messages[0]).toEqual(begun());
    expect(messages).toContainEqual(expect.objectContaining({ event: "stdout", data: "world\n" }));
    expect(messages).toContainEqual(expect.objectContaining({ event: "stderr", data: "wrong\n" }));
    expect(messages[3]).toEqual(done(12, 3));
    await client.close();
  });

  it("rejects a second piece of code while the first one runs", async () => {
    const client = node.client(`/attach/${id}`);
    await client.next();
    // The FIFO keeps the first piece running until the second one is rejected.
    const live = node.access.open(node.owner, id, { readOnly: false });
    expect((await live.exec({ command: "mkfifo /tmp/gate" })).exitCode).toBe(0);
    await client.send({ language: "bash", code: "read line < /tmp/gate; echo $line" });
    expect(await client.next()).toEqual(begun());
    await client.send({ language: "bash", code: "echo second" });
    const reason = "execution_running";
    expect(await client.next()).toEqual(status("EXECUTION_ERROR", { message: expect.any(String), reason }));
    await live.exec({ command: "echo first > /tmp/gate" });
    expect(await client.take(2)).toEqual([printed("first\n"), done(6)]);
  });
});
