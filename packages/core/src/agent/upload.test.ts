import { rejection, settle } from "@sandpiper/protocol/testing";
import { describe, expect, it } from "vitest";
import { connectedAgent } from "../testing/scripted-agent.ts";
import { UPLOAD_PIECE_BYTES } from "./outbound-stream.ts";
import { uploadFile } from "./upload.ts";

const KIB = 1024;

async function setUp() {
  const { clock, agent, client } = await connectedAgent();
  const request = () => agent.sent("file.write")[0] ?? {};
  const sentBytes = () =>
    agent.received
      .filter(({ message }) => message["method"] === "stream.data")
      .reduce((sum, { attachment }) => sum + (attachment?.length ?? 0), 0);
  return { clock, agent, client, request, sentBytes };
}

describe("an upload", () => {
  it("never sends more than its credit, and nothing before the first", async () => {
    const { agent, client, request, sentBytes } = await setUp();
    const upload = uploadFile(client, { path: "x" }, new Uint8Array(2000 * KIB));
    await settle();
    expect(sentBytes()).toBe(0);
    agent.credit(request(), 300 * KIB);
    await settle();
    expect(sentBytes()).toBe(300 * KIB);
    agent.credit(request(), 1);
    await settle();
    expect(sentBytes()).toBe(300 * KIB + 1);
    agent.credit(request(), Number.MAX_SAFE_INTEGER);
    await settle();
    expect(sentBytes()).toBe(2000 * KIB);
    expect(agent.sent("stream.end")).toHaveLength(1);
    const sizes = agent.received.map(({ attachment }) => attachment?.length ?? 0);
    expect(Math.max(...sizes)).toBe(UPLOAD_PIECE_BYTES);
    agent.answer(request(), { size: 2000 * KIB });
    expect(await upload).toEqual({ size: 2000 * KIB });
  });

  it("waits while the channel is full", async () => {
    const { agent, client, request, sentBytes } = await setUp();
    const pressure = Promise.withResolvers<void>();
    const upload = uploadFile(client, { path: "x" }, new Uint8Array(2000 * KIB));
    await settle();
    agent.backPressure = pressure.promise;
    agent.credit(request(), 2000 * KIB);
    await settle();
    expect(sentBytes()).toBe(UPLOAD_PIECE_BYTES);
    agent.backPressure = undefined;
    pressure.resolve();
    await settle();
    expect(sentBytes()).toBe(2000 * KIB);
    agent.answer(request(), { size: 2000 * KIB });
    await upload;
  });

  it("stops when the agent refuses, even if source and channel hang", async () => {
    const { agent, client, request } = await setUp();
    let hasReturned = false;
    const stuck: AsyncIterable<Uint8Array> = {
      [Symbol.asyncIterator]: () => ({
        next: () => new Promise(() => {}),
        return: async () => {
          hasReturned = true;
          return { done: true, value: undefined };
        },
      }),
    };
    const upload = rejection(uploadFile(client, { path: "x" }, stuck));
    await settle();
    agent.fail(request(), { code: "resource_exhausted", reason: "disk_full" });
    expect(await upload).toMatchObject({ code: "resource_exhausted", reason: "disk_full" });
    expect(hasReturned).toBe(true);

    agent.backPressure = new Promise(() => {});
    const second = rejection(uploadFile(client, { path: "y" }, new Uint8Array(10)));
    await settle();
    const again = agent.sent("file.write")[1] ?? {};
    agent.credit(again, 10);
    await settle();
    agent.fail(again, { code: "resource_exhausted", reason: "disk_full" });
    expect(await second).toMatchObject({ reason: "disk_full" });
  });

  it("is canceled when its source fails, and fails with the source's own error", async () => {
    const { agent, client, request } = await setUp();
    const broken = new Error("the source broke");
    async function* source() {
      yield new Uint8Array(1);
      throw broken;
    }
    const upload = uploadFile(client, { path: "x" }, source());
    upload.catch(() => {});
    await settle();
    agent.credit(request(), 1000);
    await expect(upload).rejects.toBe(broken);
    await settle();
    expect(agent.sent("cancel")).toHaveLength(1);
    expect(agent.sent("stream.end")).toEqual([]);
  });

  it("limits the wait for credit and for its answer", async () => {
    const { clock, agent, client, request } = await setUp();
    const stalled = rejection(uploadFile(client, { path: "x" }, new Uint8Array(10)));
    await clock.advance(30_000);
    expect(await stalled).toMatchObject({ code: "deadline_exceeded", reason: "rpc_timeout" });
    const unanswered = rejection(uploadFile(client, { path: "y" }, new Uint8Array(10)));
    await settle();
    agent.credit({ ...request(), id: agent.sent("file.write")[1]?.["id"] }, 10);
    await clock.advance(30_000);
    expect(await unanswered).toMatchObject({ code: "deadline_exceeded", reason: "rpc_timeout" });
    expect(clock.pending).toBe(0);
  });

  it("sends texts and plain lists as well", async () => {
    const { agent, client, request, sentBytes } = await setUp();
    const upload = uploadFile(client, { path: "x" }, [new Uint8Array(3), new Uint8Array(0), new Uint8Array(4)]);
    await settle();
    agent.credit(request(), 1000);
    await settle();
    expect(sentBytes()).toBe(7);
    agent.answer(request(), { size: 7 });
    await upload;
  });
});
