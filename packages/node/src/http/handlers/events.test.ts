import { FakeClock } from "@sandpiper/core/testing";
import { type EventBody, eventListSchema, eventSchema } from "@sandpiper/protocol";
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

  it("begin with the state of every sandbox on request, and continue without a gap", async () => {
    const node = await setUp();
    await using server = await node.listen();
    const paused = await node.create({ name: "one" });
    await node.request("POST", `/v1/sandboxes/${paused.id}/pause`);
    const ready = await node.create();
    const gone = await node.create();
    await node.request("DELETE", `/v1/sandboxes/${gone.id}`);
    await node.create({}, { key: node.key({ tenant: "other" }) });
    const states = [
      [ready.id, "ready", null],
      [paused.id, "paused", "one"],
    ];
    const stateOf = ({ kind, sandboxId, details }: EventBody) => {
      expect(kind).toBe("sandbox.state");
      return [sandboxId, details["state"], details["name"]];
    };
    const listed = await node.request("GET", "/v1/events?replay=true");
    expect(eventListSchema.parse(await listed.json()).items.map(stateOf)).toEqual(states);
    const one = await node.request("GET", `/v1/events?replay=true&sandbox=${paused.id}`);
    expect(eventListSchema.parse(await one.json()).items.map(stateOf)).toEqual(states.slice(1));

    const response = await server.fetch("GET", "/v1/events?replay=true", { headers: sse });
    await node.request("DELETE", `/v1/sandboxes/${ready.id}`);
    const [first, second, live] = await take(response, 3);
    expect([first, second].map((event) => stateOf(event?.data as EventBody))).toEqual(states);
    expect(live).toMatchObject({ event: "sandbox.destroyed", data: { sandboxId: ready.id } });
    // States have no id, so that a browser which reconnects before the first event gets all states again.
    expect([first?.id, second?.id]).toEqual([0, 0]);
    expect(live?.id).toBeGreaterThan(first?.data.id as number);
    const both = await node.request("GET", "/v1/events?replay=true&after=1");
    expect(await errorOf(both)).toMatchObject({ status: 400, reason: "invalid_query" });
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
