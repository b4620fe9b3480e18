import { secretListSchema, secretResourceSchema } from "@sandpiper/protocol";
import { MockProvider } from "@sandpiper/providers";
import { describe, expect, it } from "vitest";
import { errorOf, nodeOfTest } from "../testing/test-node.ts";

const VALUE = "sk-real-0123456789";
const openai = { name: "openai", value: VALUE, hosts: ["api.openai.com"], env: "OPENAI_API_KEY" };

async function setUp() {
  const node = await nodeOfTest({ provider: new MockProvider() });
  const post = (json: object, options: object = {}) => node.request("POST", "/v1/secrets", { json, ...options });
  return {
    ...node,
    post,
    other: node.key({ tenant: "other" }),
    reader: node.key({ tenant: "mine", scopes: ["read"] }),
  };
}

describe("secrets over REST", () => {
  it("are created, listed, rotated and deleted without a value in any answer or audit entry", async () => {
    const { post, request, audit, logged, reader } = await setUp();
    const created = await post(openai);
    expect(created.status).toBe(201);
    const texts = [await created.text()];
    expect(secretResourceSchema.parse(JSON.parse(texts[0] as string))).toMatchObject({
      name: "openai",
      allowInsecure: false,
    });
    const rotated = await request("PATCH", "/v1/secrets/openai", { json: { value: `${VALUE}x` } });
    const listed = await request("GET", "/v1/secrets", { key: reader });
    texts.push(await rotated.text(), await listed.text());
    expect(secretListSchema.parse(JSON.parse(texts[2] as string)).items).toHaveLength(1);
    expect((await request("DELETE", "/v1/secrets/openai")).status).toBe(204);
    texts.push(await (await post({ ...openai, value: `${VALUE}\n` })).text());
    const entries = audit.list({ after: 0, limit: 100 });
    expect(entries.map(({ operation }) => operation)).toContain("createSecret");
    expect(JSON.stringify([texts, entries, logged])).not.toContain(VALUE);
  });

  it("belong to their tenant, and a read-only key cannot change them", async () => {
    const { post, request, other, reader } = await setUp();
    await post(openai);
    expect(await (await request("GET", "/v1/secrets", { key: other })).json()).toEqual({ items: [] });
    const foreign = await request("PATCH", "/v1/secrets/openai", { json: { value: VALUE }, key: other });
    expect(await errorOf(foreign)).toMatchObject({ reason: "no_such_secret" });
    expect((await request("DELETE", "/v1/secrets/openai", { key: reader })).status).toBe(403);
  });

  it("are used by a sandbox by name, and only a key of the tenant chooses them", async () => {
    const { post, request, create } = await setUp();
    await post(openai);
    const { id, token, secrets } = await create({ secrets: ["openai"] });
    expect(secrets).toMatchObject([{ name: "openai", env: "OPENAI_API_KEY" }]);
    const patch = (json: object, options: object = {}) => request("PATCH", `/v1/sandboxes/${id}`, { json, ...options });
    expect(await errorOf(await patch({ secrets: [] }, { key: token }))).toMatchObject({ reason: "secrets_need_key" });
    expect(await errorOf(await patch({ secrets: ["missing"] }))).toMatchObject({ reason: "no_such_secret" });
    expect(await (await patch({ secrets: [] })).json()).toMatchObject({ secrets: [] });
    const refused = await request("POST", "/v1/sandboxes", { json: { provider: "mock", secrets: ["missing"] } });
    expect(refused.status).toBe(404);
  });
});
