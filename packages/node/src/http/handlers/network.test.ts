import { completeNetwork, networkPolicySchema, type SandboxResource } from "@sandpiper/protocol";
import { MockProvider } from "@sandpiper/providers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestNode, errorOf, type TestNode } from "../testing/test-node.ts";

let node: TestNode;
beforeAll(async () => {
  node = await createTestNode({ provider: new MockProvider() });
});
afterAll(() => node[Symbol.asyncDispose]());

const at = ({ id }: SandboxResource) => `/v1/sandboxes/${id}/network`;
const put = (sandbox: SandboxResource, json: unknown, key?: string) =>
  node.request("PUT", at(sandbox), { json, ...(key === undefined ? {} : { key }) });
const create = async (json: object, key?: string) =>
  node.request("POST", "/v1/sandboxes", {
    json: { provider: "mock", ...json },
    ...(key === undefined ? {} : { key }),
  });

describe("the network of a sandbox", () => {
  it("is none unless the caller asks for another, and is shown completely", async () => {
    expect((await node.create()).network).toEqual(completeNetwork("none"));
    expect((await node.create({ network: "open" })).network).toEqual(completeNetwork("open"));
    const rules = [{ allow: "Example.COM.", ports: [443] }, { deny: "*" }];
    const { network } = await node.create({ network: { rules } });
    expect(network.rules).toEqual([{ allow: "example.com", ports: [443] }, { deny: "*" }]);
  });

  it("is changed with PUT, which reports an update", async () => {
    const sandbox = await node.create();
    const answer = await put(sandbox, { rules: [{ allow: "a.example" }], limits: { maxConnections: 5 } });
    const changed = networkPolicySchema.parse(await answer.json());
    expect(changed).toMatchObject({ rules: [{ allow: "a.example" }], default: "deny", limits: { maxConnections: 5 } });
    expect(await (await node.request("GET", at(sandbox))).json()).toEqual(changed);
    expect(node.records.get(sandbox.id)?.network).toEqual(changed);
    const kinds = node.events.list({ after: 0, limit: 1000, sandboxId: sandbox.id }).map(({ kind }) => kind);
    expect(kinds.at(-1)).toBe("sandbox.updated");
  });

  it("cannot be changed with the sandbox's own token or a read-only key, nor seen by other tenants", async () => {
    const sandbox = await node.create();
    const token = sandbox.token as string;
    expect((await node.request("GET", at(sandbox), { key: token })).status).toBe(200);
    expect(await errorOf(await put(sandbox, "open", token))).toMatchObject({ status: 403 });
    const reader = node.key({ tenant: "mine", scopes: ["read"] });
    expect((await node.request("GET", at(sandbox), { key: reader })).status).toBe(200);
    expect(await errorOf(await put(sandbox, "open", reader))).toMatchObject({ status: 403 });
    const stranger = node.key({ tenant: "other" });
    expect(await errorOf(await put(sandbox, "open", stranger))).toMatchObject({ status: 404 });
  });

  it.each([
    "everything",
    null,
    { rules: [{ allow: "127.1" }] },
    { rules: [{ allow: "a.example", ports: [70_000] }] },
    { rule: [] },
  ])("refuses %j", async (network) => {
    const sandbox = await node.create();
    expect(await errorOf(await put(sandbox, network))).toMatchObject({ status: 400 });
    expect(await errorOf(await create({ network }))).toMatchObject({ status: 400 });
  });

  it("names the known bundles if a rule names another", async () => {
    const refused = await errorOf(await create({ network: { rules: [{ allow: "@pipy" }] } }));
    expect(refused).toMatchObject({ status: 400, reason: "unknown_bundle", details: { bundle: "pipy" } });
    expect(refused.hint).toContain("@pypi");
  });

  it("of an ended sandbox cannot be changed", async () => {
    const sandbox = await node.create();
    await node.request("DELETE", `/v1/sandboxes/${sandbox.id}`);
    expect(await errorOf(await put(sandbox, "open"))).toMatchObject({ status: 410 });
  });
});

describe("a key with a limit for networks", () => {
  it("creates, changes and forks no sandbox beyond it, and the error names the limit", async () => {
    const limited = node.key({ tenant: "mine", maxNetwork: { rules: [{ allow: "@pypi" }] } });
    const refused = await errorOf(await create({ network: "open" }, limited));
    expect(refused).toMatchObject({ status: 403, code: "permission_denied", reason: "network_limit" });
    expect(refused.message).toContain("allow=@pypi");
    const created = await create({ network: { rules: [{ allow: "pypi.org", ports: [443] }] } }, limited);
    expect(created.status).toBe(201);
    const sandbox = (await created.json()) as SandboxResource;
    expect(await errorOf(await put(sandbox, { rules: [{ allow: "*" }] }, limited))).toMatchObject({ status: 403 });
    expect((await put(sandbox, "none", limited)).status).toBe(200);
    const open = await node.create({ network: "open" });
    const fork = await node.request("POST", `/v1/sandboxes/${open.id}/fork`, { json: {}, key: limited });
    expect(await errorOf(fork)).toMatchObject({ status: 403, reason: "network_limit" });
  });

  it("shows the limit, keeps it, and loses it with null", async () => {
    const admin = node.key({ scopes: ["admin"] });
    const made = await node.request("POST", "/v1/keys", { json: { name: "k", maxNetwork: "none" }, key: admin });
    const { id, key, maxNetwork } = (await made.json()) as { id: string; key: string; maxNetwork: unknown };
    expect(maxNetwork).toEqual(completeNetwork("none"));
    expect(await errorOf(await create({ network: "open" }, key))).toMatchObject({ status: 403 });
    const renamed = await node.request("PATCH", `/v1/keys/${id}`, { json: { name: "other" }, key: admin });
    expect(await renamed.json()).toMatchObject({ name: "other", maxNetwork });
    const freed = await node.request("PATCH", `/v1/keys/${id}`, { json: { maxNetwork: null }, key: admin });
    expect(await freed.json()).toMatchObject({ maxNetwork: null });
    expect((await create({ network: "open" }, key)).status).toBe(201);
  });
});
