import { once } from "node:events";
import { connect } from "node:net";
import { MockProvider } from "@sandpiper/providers";
import { afterAll, describe, expect, it } from "vitest";
import { sharedDirectory } from "../../packages/providers/src/host/testing/shared.ts";
import { startSdkNode } from "../sdk/sdk-node.ts";

const home = sharedDirectory("audit-flood");
const node = await startSdkNode({ home }, { providers: [new MockProvider()] });
afterAll(() => node.stop());

const { hostname, port } = new URL(node.url);

/** One refused upgrade of an anonymous caller; resolves with the status line. */
async function refusedUpgrade(path: string): Promise<string> {
  const socket = connect({ host: hostname, port: Number(port) });
  socket.end(
    `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
  );
  let text = "";
  socket.on("data", (bytes) => (text += bytes.toString("latin1")));
  await once(socket, "close");
  return text.slice(0, text.indexOf("\r\n"));
}

async function entries(): Promise<{ operation: string; status: number }[]> {
  const response = await fetch(`${node.url}/v1/audit?limit=1000`, {
    headers: { authorization: `Bearer ${node.apiKey}` },
  });
  return ((await response.json()) as { items: { operation: string; status: number }[] }).items;
}

describe("an anonymous caller", () => {
  it("adds few entries to the audit log with 2,500 refused upgrades, and removes none", async () => {
    await node.client.keys.create({ name: "older", tenant: "older" });
    for (let sent = 0; sent < 2500; sent += 125) {
      const answers = await Promise.all(Array.from({ length: 125 }, () => refusedUpgrade("/v1/socket")));
      expect(new Set(answers)).toEqual(new Set(["HTTP/1.1 401 Unauthorized"]));
    }
    const listed = await entries();
    expect(listed[0]).toMatchObject({ operation: "createKey", status: 201 });
    expect(listed.length).toBeLessThan(20);
  });
});
