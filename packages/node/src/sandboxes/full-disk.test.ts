import { MockProvider } from "@sandpiper/providers";
import { expect, it, vi } from "vitest";
import { errorOf, nodeOfTest } from "../http/testing/test-node.ts";

it("a sandbox that cannot be recorded as ready, because the disk is full, leaves no instance", async () => {
  const provider = new MockProvider();
  const { request, create, records } = await nodeOfTest({ provider });
  const change = vi.spyOn(records, "change").mockImplementation(() => {
    throw Object.assign(new Error("database or disk is full"), { errcode: 13 });
  });
  const refused = await errorOf(await request("POST", "/v1/sandboxes", { json: { provider: "mock" } }));
  expect(refused).toMatchObject({ status: 429, reason: "disk_full" });
  expect(await provider.list()).toEqual([]);
  change.mockRestore();
  await create();
  expect(await provider.list()).toHaveLength(1);
});
