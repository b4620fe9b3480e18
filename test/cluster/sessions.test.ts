import { describe, expect, it } from "vitest";
import { countTo, numbersTo } from "../node/numbered-output.ts";
import { createdBy, isStatus, printed, rawSession, status } from "./raw-session.ts";
import { startSharedBed } from "./shared-bed.ts";

const COUNT = countTo(100);
const NUMBERS = numbersTo(100);
const text = expect.any(String);

describe("a session in a cluster, message by message", () => {
  it("is created on one node, reattached there, and moves to the node where a client attaches", async () => {
    await using bed = await startSharedBed({ store: "s3" });
    const [first, second] = bed.nodes;
    const credential = first.apiKey;

    const creating = rawSession(bed, "/create?memoryMib=128", { credential, cookie: "SANDPIPER_NODE=node-1" });
    expect(await creating.next()).toEqual(status("CREATING"));
    const named = (await creating.next()) as { sandbox_id: string; token: string };
    expect(named).toEqual({ event: "sandbox_id", sandbox_id: text, token: text });
    expect(await creating.next()).toEqual(status("RUNNING"));
    await creating.send({ language: "bash", code: "echo one > ~/file; echo made" });
    expect(await creating.take(3)).toMatchObject([
      status("EXECUTION_RUNNING"),
      { event: "stdout", data: "made\n" },
      status("EXECUTION_DONE", { exit_code: 0 }),
    ]);
    await creating.close();

    const path = `/attach/${named.sandbox_id}`;
    const token = { credential: named.token };
    const again = rawSession(bed, path, { ...token, cookie: "SANDPIPER_NODE=node-1" });
    expect(await again.next()).toEqual(status("RUNNING"));
    await again.send({ language: "bash", code: COUNT });
    await again.until((message) => "data" in message && `${message.data}`.includes("5\n"));
    await again.close();

    const moved = rawSession(bed, path, { ...token, cookie: "SANDPIPER_NODE=node-2" });
    expect(await moved.take(3)).toMatchObject([status("RESTORING"), status("RUNNING"), status("EXECUTION_RUNNING")]);
    const rest = await moved.until(isStatus("EXECUTION_DONE"));
    expect(printed(rest)).toBe(NUMBERS);
    expect(rest.at(-1)).toMatchObject(status("EXECUTION_DONE", { exit_code: 0 }));
    await moved.send({ language: "bash", code: "cat ~/file" });
    expect(printed(await moved.until(isStatus("EXECUTION_DONE")))).toBe("one\n");
    const [here] = (await second.client(credential).nodes.list()).filter(({ isThisNode }) => isThisNode);
    expect(here?.sandboxes).toBe(1);
  });

  it("continues at the last byte that the client received on each node that it attaches to, in turn", async () => {
    await using bed = await startSharedBed({ store: "file" });
    const [first, second] = bed.nodes;
    const creating = rawSession(first, "/create?memoryMib=128", { credential: first.apiKey });
    const { id, token } = await createdBy(creating);
    await creating.send({ language: "bash", code: COUNT, execution: "count" });
    const received = await creating.until((message) => printed([message]).includes("5\n"));
    let client = creating;
    for (const node of [second, first, second]) {
      const { next } = received.at(-1) as { readonly next: string };
      // A dropped network: neither side closes the connection properly.
      client.terminate();
      const query = `takeover=true&execution=count&offset=${encodeURIComponent(next)}`;
      client = rawSession(node, `/attach/${id}?${query}`, { credential: token });
      const offset = Number(next);
      expect(await client.take(3)).toEqual([
        status("RESTORING"),
        status("RUNNING"),
        status("EXECUTION_RUNNING", { execution: "count", offset }),
      ]);
      received.push(await client.next());
    }
    received.push(...(await client.until(isStatus("EXECUTION_DONE"))));
    expect(printed(received)).toBe(NUMBERS);
    expect(received.at(-1)).toMatchObject({ execution: "count", offset: NUMBERS.length, exit_code: 0 });
  });

  it("is in use while a client is attached on another node, and moves on a takeover with the token", async () => {
    await using bed = await startSharedBed({ store: "s3" });
    const [first, second] = bed.nodes;
    const credential = first.apiKey;
    const holder = rawSession(first, "/create?memoryMib=128", { credential });
    const { id, token } = await createdBy(holder);
    await holder.send({ language: "bash", code: COUNT });
    await holder.next();

    for (const path of [`/attach/${id}`, `/attach/${id}?takeover=true`]) {
      const refused = rawSession(second, path, { credential });
      expect((await refused.until(isStatus("IN_USE"))).at(-1)).toMatchObject(status("IN_USE", { message: text }));
      await refused.closed;
    }
    const taking = rawSession(second, `/attach/${id}?takeover=true`, { credential: token });
    expect(await taking.take(2)).toEqual([status("RESTORING"), status("RUNNING")]);
    expect((await holder.until(isStatus("MOVED"))).at(-1)).toEqual(status("MOVED", { message: text }));
    expect(await holder.closed).toMatchObject({ code: 1012 });
    expect(printed(await taking.until(isStatus("EXECUTION_DONE")))).toBe(NUMBERS);

    await taking.close();
    const back = rawSession(first, `/attach/${id}`, { credential });
    expect(await back.take(2)).toEqual([status("RESTORING"), status("RUNNING")]);
  });
});

describe("a session whose node died and does not return", () => {
  it("is restored on another node from the newest checkpoint after the lease expires, and names the checkpoint", async () => {
    await using bed = await startSharedBed({ store: "s3" });
    const [first, second] = bed.nodes;
    const client = first.client();
    const sandbox = await client.sandboxes.create({ memoryMib: 128 });
    await sandbox.exec("echo saved > ~/file");
    const { id: checkpoint } = await sandbox.checkpoint();
    await sandbox.exec("echo lost > ~/file");
    const credential = first.apiKey;
    client.close();
    await first.kill9();

    const session = rawSession(second, `/attach/${sandbox.id}`, { credential });
    const rolledBackTo = { checkpoint, createdAt: text, at: text };
    expect(await session.take(2)).toEqual([status("RESTORING"), status("RUNNING", { rolledBackTo })]);
    await session.send({ language: "bash", code: "cat ~/file" });
    expect(printed(await session.until(isStatus("EXECUTION_DONE")))).toBe("saved\n");
    await session.close();

    const later = rawSession(second, `/attach/${sandbox.id}`, { credential });
    expect(await later.next()).toEqual(status("RUNNING"));
  });

  it("ends with an error when the sandbox has no checkpoint", async () => {
    await using bed = await startSharedBed({ store: "file" });
    const [first, second] = bed.nodes;
    const creating = rawSession(first, "/create?memoryMib=128", { credential: first.apiKey });
    const { id, token } = await createdBy(creating);
    await first.kill9();
    const session = rawSession(second, `/attach/${id}`, { credential: token });
    expect(await session.next()).toEqual(status("RESTORING"));
    expect(await session.next()).toMatchObject({
      event: "error",
      message: expect.stringContaining("has no checkpoint"),
    });
    await session.closed;
  });
});
