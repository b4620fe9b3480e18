import { FakeClock } from "@sandpiper/core/testing";
import { eventListSchema, eventSchema } from "@sandpiper/protocol";
import { MockProvider } from "@sandpiper/providers";
import { describe, expect, it } from "vitest";
import { errorOf, nodeOfTest, type TestNodeOptions } from "../testing/test-node.ts";

const setUp = (deps: TestNodeOptions["deps"] = {}) => nodeOfTest({ provider: new MockProvider(), deps });

/** Reads the given number of server-sent events. */
async function take(response: Response, count: number) {
  const blocks: string[] = [];
  let rest = "";
  for await (const bytes of response.body ?? []) {
    rest += Buffer.from(bytes).toString();
    const parts = rest.split("\n\n");
    rest = parts.pop() ?? "";
    blocks.push(...parts.filter((part) => part !== ":"));
    if (blocks.length >= count) break;
  }
  return blocks.map((block) => {
    const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1] ?? "";
    return { id: Number(field("id")), event: field("event"), data: eventSchema.parse(JSON.parse(field("data"))) };
  });
}

const sse = { accept: "text/event-stream" };

describe("events", () => {
  it("are listed for their tenant, after an id, and by sandbox", async () => {
    const node = await setUp();
    const { id } = await node.create();
    await node.create();
    await node.create({}, { key: node.key({ tenant: "other" }) });
    const list = async (query: string, key = node.owner) =>
      eventListSchema.parse(await (await node.request("GET", `/v1/events${query}`, { key })).json()).items;
    const all = await list("");
    expect(all.map(({ kind }) => kind)).toEqual([
      "sandbox.created",
      "sandbox.ready",
      "sandbox.created",
      "sandbox.ready",
    ]);
    expect(await list(`?sandbox=${id}`)).toEqual(all.slice(0, 2));
    expect(await list(`?after=${all[0]?.id}&limit=2`)).toEqual(all.slice(1, 3));
    expect(await list("", node.key({ scopes: ["admin"] }))).toHaveLength(6);
  });

  it("are replayed after the last seen id, then sent as they happen", async () => {
    const node = await setUp();
    await using server = await node.listen();
    await node.create();
    const first = await server.fetch("GET", "/v1/events", { headers: sse });
    expect(first.headers.get("content-type")).toBe("text/event-stream");
    const [created] = await take(first, 1);
    expect(created).toMatchObject({ event: "sandbox.created", data: { kind: "sandbox.created" } });
    const headers = { ...sse, "last-event-id": String(created?.id) };
    const second = await server.fetch("GET", "/v1/events?after=0", { headers });
    const seen = take(second, 3);
    await node.create();
    expect((await seen).map(({ event }) => event)).toEqual(["sandbox.ready", "sandbox.created", "sandbox.ready"]);
    expect(
      await errorOf(await node.request("GET", "/v1/events", { headers: { ...sse, "last-event-id": "x" } })),
    ).toMatchObject({ status: 400 });
  });

  it("include a heartbeat while nothing happens", async () => {
    const clock = new FakeClock();
    const node = await setUp({ clock });
    const response = await node.request("GET", "/v1/events", { headers: sse });
    const reader = response.body?.getReader();
    const next = async () => Buffer.from((await reader?.read())?.value ?? []).toString();
    expect(await next()).toBe(":\n\n");
    const heartbeat = next();
    await expect.poll(() => clock.pending).toBeGreaterThan(0);
    clock.advance(15_000);
    expect(await heartbeat).toBe(":\n\n");
    await reader?.cancel();
    expect(clock.pending).toBe(0);
  });
});
