import type { ExecOptions } from "@sandpiper/protocol";
import { Client } from "../client.ts";
import { createMemoryServer } from "./create-memory-server.ts";
import { ManualTiming } from "./manual-timing.ts";
import { ScriptedSockets } from "./scripted-sockets.ts";

export const EXIT = { exitCode: 0, signal: null, timedOut: false, outOfMemory: false, durationMs: 1 };

export const text = (value: string) => new TextEncoder().encode(value);

/** A sandbox whose requests are answered from memory, with connections and time under the test's control. */
export async function scriptedSandbox() {
  const { clientOptions } = createMemoryServer();
  const sockets = new ScriptedSockets();
  const timing = new ManualTiming();
  /** Method and path of the requests, in order. */
  const requests: string[] = [];
  const fetch: typeof globalThis.fetch = (input, init) => {
    requests.push(`${init?.method} ${new URL(String(input)).pathname}`);
    return clientOptions.fetch(input, init);
  };
  const client = new Client({ ...clientOptions, fetch, webSocket: sockets.webSocket, timing });
  const sandbox = await client.sandboxes.create();
  requests.length = 0;
  const reconnect = async () => {
    await timing.advance(100);
    sockets.last.accept();
  };
  /** Cuts the connection and accepts the next one. */
  const cut = () => {
    sockets.last.cut();
    return reconnect();
  };
  /** Closes the connection like a node whose sandbox has moved, and accepts the next one. */
  const move = () => {
    sockets.last.restart();
    return reconnect();
  };
  return { client, sandbox, sockets, timing, requests, cut, move };
}

/** A command that waits for the node's answer. */
export async function executing(options: ExecOptions = {}) {
  const scripted = await scriptedSandbox();
  const result = scripted.sandbox.exec("command", options);
  result.catch(() => {});
  scripted.sockets.last.accept();
  return { ...scripted, result };
}
