import { EventEmitter } from "node:events";
import { MockProvider } from "@sandpiper/providers";
import { expect, it } from "vitest";
import { nodeOfTest } from "./testing/test-node.ts";

it("a request whose caller leaves before it is admitted does not count towards the caller's quotas", async () => {
  const { app, keys, momentary } = await nodeOfTest({ provider: new MockProvider() });
  const { id, key } = keys.create({ name: "test", quota: { maxRequests: 1 } });
  const outgoing = Object.assign(new EventEmitter(), { closed: true });
  const answered = app.request("/v1/sandboxes", { headers: { authorization: `Bearer ${key}` } }, { outgoing });
  outgoing.emit("close");
  expect((await answered).status).toBe(200);
  expect(momentary.of({ kind: "key", name: id }).requests).toBe(0);
});
