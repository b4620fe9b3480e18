import { Client } from "../client.ts";
import type { SandboxHandle } from "../sandbox-handle.ts";
import { createMemoryServer } from "./create-memory-server.ts";
import { ManualTiming } from "./manual-timing.ts";
import { ScriptedSockets } from "./scripted-sockets.ts";

/** A sandbox whose requests are answered from memory, with connections and time under the test's control. */
export async function scriptedSandbox(): Promise<{
  readonly client: Client;
  readonly sandbox: SandboxHandle;
  readonly sockets: ScriptedSockets;
  readonly timing: ManualTiming;
  /** Method and path of the requests, in order. */
  readonly requests: string[];
}> {
  const { clientOptions } = createMemoryServer();
  const sockets = new ScriptedSockets();
  const timing = new ManualTiming();
  const requests: string[] = [];
  const fetch: typeof globalThis.fetch = (input, init) => {
    requests.push(`${init?.method} ${new URL(String(input)).pathname}`);
    return clientOptions.fetch(input, init);
  };
  const client = new Client({ ...clientOptions, fetch, webSocket: sockets.webSocket, timing });
  const sandbox = await client.sandboxes.create();
  requests.length = 0;
  return { client, sandbox, sockets, timing, requests };
}
