import { once } from "node:events";
import { MockProvider } from "@sandpiper/providers";
import { describe, expect, it, onTestFinished } from "vitest";
import { startSocketNode } from "../socket/testing/socket-node.ts";
import type { TestClient } from "../socket/testing/test-client.ts";
import { status } from "./testing/session-messages.ts";

async function roundTrip({ webSocket }: TestClient): Promise<string> {
  webSocket.ping();
  await once(webSocket, "pong");
  return "pong";
}

describe("WS /create", () => {
  it("sends the id after its audit entry is written, and output after that of the code", async () => {
    const node = await startSocketNode({ provider: new MockProvider() });
    onTestFinished(() => node[Symbol.asyncDispose]());
    const created = Promise.withResolvers<void>();
    node.auditing.written = created.promise;
    const client = node.client("/create");
    expect(await client.next()).toEqual(status("CREATING"));
    await expect.poll(() => node.audit).toMatchObject([{ operation: "createSandbox", status: 201 }]);
    const named = client.next();
    expect(await Promise.race([named, roundTrip(client)])).toBe("pong");
    created.resolve();
    expect(await named).toMatchObject({ event: "sandbox_id", sandbox_id: node.audit[0]?.sandboxId });
    expect(await client.next()).toEqual(status("RUNNING"));
    const started = Promise.withResolvers<void>();
    node.auditing.written = started.promise;
    await client.send({ language: "sh", code: "true" });
    await expect.poll(() => node.audit.at(-1)).toMatchObject({ operation: "startProcess" });
    const running = client.next();
    expect(await Promise.race([running, roundTrip(client)])).toBe("pong");
    started.resolve();
    expect(await running).toMatchObject({ status: "SANDBOX_EXECUTION_RUNNING" });
  });
});
