import { Client } from "@sandpiper/sdk";
import { createMemoryServer } from "@sandpiper/sdk/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { findSandbox, findSandboxes } from "./find-sandbox.ts";

let client: Client;
beforeEach(() => {
  client = new Client(createMemoryServer().clientOptions);
});

describe("a sandbox", () => {
  it("is found by its ID, the beginning of its ID, and its name", async () => {
    const { id } = await client.sandboxes.create({ name: "build" });
    await client.sandboxes.create({ name: "other" });
    for (const text of [id, id.slice(0, 13), "build"]) expect((await findSandbox(client, text)).id).toBe(id);
  });

  it("is not found by the beginning of a name or an unknown ID", async () => {
    await client.sandboxes.create({ name: "build" });
    await expect(findSandbox(client, "bui")).rejects.toMatchObject({ reason: "no_such_sandbox" });
    await expect(findSandbox(client, "ffffffffffff")).rejects.toMatchObject({ reason: "no_such_sandbox" });
  });

  it("is refused as ambiguous when two have the same name", async () => {
    await client.sandboxes.create({ name: "twin" });
    await client.sandboxes.create({ name: "twin" });
    await expect(findSandbox(client, "twin")).rejects.toMatchObject({ reason: "ambiguous_name" });
  });

  it("is found together with others, in the order given", async () => {
    const made = [await client.sandboxes.create({ name: "a1" }), await client.sandboxes.create({ name: "b1" })];
    const found = await findSandboxes(client, ["b1", "a1"]);
    expect(found.map(({ id }) => id)).toEqual(made.map(({ id }) => id).reverse());
  });
});
