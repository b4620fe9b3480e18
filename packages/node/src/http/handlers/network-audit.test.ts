import { type FlowRecord, flowRecordSchema, networkLogSchema, networkSuggestionSchema } from "@sandpiper/protocol";
import { MockProvider } from "@sandpiper/providers";
import { describe, expect, it, onTestFinished } from "vitest";
import { flowRecord } from "../../flows/testing/flow-record.ts";
import { errorOf, nodeOfTest } from "../testing/test-node.ts";

const setUp = async () => {
  const node = await nodeOfTest({ provider: new MockProvider() });
  const { id } = await node.create();
  const at = `/v1/sandboxes/${id}/network`;
  return {
    ...node,
    id,
    at,
    add(fields: Partial<FlowRecord>) {
      const record = flowRecord({ sandboxId: id as FlowRecord["sandboxId"], ...fields });
      if (record.endedAt === null) node.flows.opened(record, { tenant: "mine" });
      else node.flows.closed(record, { tenant: "mine" });
      return record;
    },
    async log(query = "", options = {}) {
      const answer = await node.request("GET", `${at}/log${query}`, options);
      return networkLogSchema.parse(await answer.json());
    },
  };
};

const sse = { accept: "text/event-stream" };

/** Reads server-sent events until `enough` of them were read, or the stream ends. */
async function take(response: Response, enough: number) {
  const found: { id: number; kind: string; data: unknown }[] = [];
  let text = "";
  for await (const bytes of response.body ?? []) {
    text += Buffer.from(bytes).toString();
    const blocks = text.split("\n\n");
    text = blocks.pop() ?? "";
    for (const block of blocks.filter((each) => each !== ":")) {
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1] ?? "";
      found.push({ id: Number(field("id")), kind: field("event"), data: JSON.parse(field("data")) });
    }
    if (found.length >= enough) break;
  }
  return found;
}

describe("the network log", () => {
  it("lists the newest records, oldest first, and continues after a cursor", async () => {
    const node = await setUp();
    const added = ["a", "b", "c", "d"].map((name) => node.add({ name }));
    const newest = await node.log("?limit=2");
    expect(newest).toMatchObject({ items: added.slice(2), dropped: 0 });
    const oldest = await node.log("?after=0&limit=3");
    expect(oldest.items).toEqual(added.slice(0, 3));
    expect(await node.log(`?after=${oldest.cursor}`)).toMatchObject({ items: added.slice(3), cursor: newest.cursor });
    expect(await node.log(`?after=${newest.cursor}`)).toMatchObject({ items: [], cursor: newest.cursor });
  });

  it("filters denials and what began earlier", async () => {
    const node = await setUp();
    node.add({ at: "2026-01-01T00:00:00.000Z", decision: "denied" });
    const recent = node.add({ at: "2026-01-03T00:00:00.000Z", decision: "denied" });
    node.add({ at: "2026-01-03T00:00:00.000Z" });
    expect((await node.log("?denied=true&since=2026-01-02T00:00:00.000Z")).items).toEqual([recent]);
    const wrong = await node.request("GET", `${node.at}/log?since=yesterday`);
    expect(await errorOf(wrong)).toMatchObject({ status: 400, reason: "invalid_query" });
  });

  it("is visible to its tenant and the sandbox's token, and to no other tenant", async () => {
    const node = await setUp();
    node.add({});
    for (const part of ["log", "suggestion", "requests"]) {
      const other = await node.request("GET", `${node.at}/${part}`, { key: node.key({ tenant: "other" }) });
      expect(await errorOf(other)).toMatchObject({ status: 404, reason: "no_such_sandbox" });
    }
    const { token } = await node.create();
    expect((await node.request("GET", `${node.at}/log`, { key: token })).status).toBe(404);
    expect((await node.log("", { key: node.key({ tenant: "mine", scopes: ["read"] }) })).items).toHaveLength(1);
  });

  it("streams records as they change, from where a reader stopped, until the sandbox is destroyed", async () => {
    const node = await setUp();
    await using server = await node.listen();
    const first = node.add({ name: "first" });
    const [seen] = await take(await server.fetch("GET", `${node.at}/log`, { headers: sse }), 1);
    expect(seen).toMatchObject({ kind: "ended", data: first });
    const headers = { ...sse, "last-event-id": String(seen?.id) };
    const response = await server.fetch("GET", `${node.at}/log?after=0`, { headers });
    const rest = take(response, Number.POSITIVE_INFINITY);
    const open = node.add({ name: "open", endedAt: null, durationMs: null });
    await expect.poll(async () => (await node.log()).items).toHaveLength(2);
    const ended = node.add({ ...open, endedAt: "2026-01-01T00:00:09.000Z", durationMs: 9000 });
    await node.request("DELETE", `/v1/sandboxes/${node.id}`);
    const events = await rest;
    expect(events.map(({ kind, data }) => [kind, data])).toEqual([
      ["opened", open],
      ["ended", ended],
      ["end", {}],
    ]);
    expect(flowRecordSchema.safeParse(events[0]?.data).success).toBe(true);
    // Of a destroyed sandbox, the log is still there.
    const after = await take(await server.fetch("GET", `${node.at}/log`, { headers: sse }), Number.POSITIVE_INFINITY);
    expect(after.map(({ kind }) => kind)).toEqual(["ended", "ended", "end"]);
  });

  it("becomes a suggestion with the text for --network", async () => {
    const node = await setUp();
    for (const name of ["pypi.org", "files.pythonhosted.org", "example.com"]) node.add({ name });
    node.add({ name: "old.example.com", at: "2020-01-01T00:00:00.000Z" });
    const suggest = async (query = "") =>
      networkSuggestionSchema.parse(await (await node.request("GET", `${node.at}/suggestion${query}`)).json());
    expect(await suggest("?since=2025-01-01T00:00:00.000Z")).toEqual({
      rules: [{ allow: "@pypi" }, { allow: "example.com", ports: [443] }],
      text: "allow=@pypi,example.com:443",
      records: 3,
      dropped: 0,
    });
    expect(await suggest("?since=2030-01-01T00:00:00.000Z")).toMatchObject({ rules: [], text: null, records: 0 });
  });
});

describe("requests for new hosts", () => {
  const host = { name: "example.com", address: null, port: 443, pid: 1, program: "curl" };

  async function asking() {
    const node = await setUp();
    const { signal } = new AbortController();
    const sandboxId = node.id as FlowRecord["sandboxId"];
    const ask = (fields = {}) => node.approvals.decide({ sandboxId, tenant: "mine", ...host, ...fields }, signal);
    await node.request("PUT", node.at, { json: "ask" });
    const first = () => node.approvals.list(sandboxId)[0]?.id as string;
    const decide = (request: string, decision: string, key = node.owner) =>
      node.request("POST", `${node.at}/requests/${request}`, { json: { decision }, key });
    onTestFinished(() => node.approvals[Symbol.dispose]());
    return { ...node, ask, first, decide };
  }

  it("are listed, and reported as an event", async () => {
    const node = await asking();
    void node.ask();
    const answer = await node.request("GET", `${node.at}/requests`);
    expect(await answer.json()).toMatchObject({ items: [{ ...host, sandboxId: node.id }] });
    const events = node.events.list({ after: 0, limit: 100 }).filter(({ kind }) => kind === "network.asked");
    expect(events).toMatchObject([{ sandboxId: node.id, details: { ...host, request: node.first() } }]);
  });

  it("become rules when they are decided, and their connections continue or end", async () => {
    const node = await asking();
    const allowed = node.ask();
    const answer = await node.decide(node.first(), "allow");
    expect(await answer.json()).toMatchObject({ rules: [{ allow: "example.com", ports: [443] }], default: "ask" });
    expect(await allowed).toBe("allow");
    const denied = node.ask({ name: null, address: "203.0.113.9", port: 22 });
    expect((await node.decide(node.first(), "deny")).status).toBe(200);
    expect(await denied).toBe("deny");
    expect(await (await node.request("GET", node.at)).json()).toMatchObject({
      rules: [
        { deny: "203.0.113.9", ports: [22] },
        { allow: "example.com", ports: [443] },
      ],
    });
  });

  it("are not decided by the sandbox's token, a read-only key, another tenant, or twice", async () => {
    const node = await asking();
    const held = node.ask();
    const id = node.first();
    const { token } = (await (await node.request("GET", `/v1/sandboxes/${node.id}`)).json()) as { token: string };
    expect((await node.decide(id, "allow", token)).status).toBe(403);
    expect((await node.decide(id, "allow", node.key({ tenant: "mine", scopes: ["read"] }))).status).toBe(403);
    expect((await node.decide(id, "allow", node.key({ tenant: "other" }))).status).toBe(404);
    expect((await node.decide(id, "maybe")).status).toBe(400);
    expect(node.approvals.list(node.id as FlowRecord["sandboxId"])).toHaveLength(1);
    await node.decide(id, "deny");
    expect(await held).toBe("deny");
    expect(await errorOf(await node.decide(id, "allow"))).toMatchObject({
      status: 404,
      reason: "no_such_network_request",
    });
  });

  it("stay undecided when the key may not open that much of the network", async () => {
    const node = await asking();
    void node.ask();
    const limited = node.key({
      tenant: "mine",
      maxNetwork: { rules: [{ allow: "other.example.com" }], default: "ask" },
    });
    expect((await node.decide(node.first(), "allow", limited)).status).toBe(403);
    expect(node.first()).toBeDefined();
    expect(await (await node.request("GET", node.at)).json()).toMatchObject({ rules: [] });
  });

  it("end with their sandbox", async () => {
    const node = await asking();
    const held = node.ask();
    await node.request("DELETE", `/v1/sandboxes/${node.id}`);
    expect(await held).toBe("deny");
  });
});
