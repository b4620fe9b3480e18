import type { SandboxResource } from "@sandpiper/protocol";
import type { WebSocketConstructor } from "../socket/web-socket.ts";
import { createMemoryFetch } from "./memory-fetch.ts";
import type { ExecHandler } from "./memory-process.ts";
import { createMemoryWebSocket } from "./memory-socket.ts";
import { MemoryState } from "./memory-state.ts";

export interface MemoryServer {
  /** For `new Client(…)`, `Sandbox.create(…)` and so on. */
  readonly clientOptions: {
    readonly url: string;
    readonly apiKey: string;
    readonly fetch: typeof fetch;
    readonly webSocket: WebSocketConstructor;
  };
  readonly sandboxes: readonly SandboxResource[];
  /** Answers every command from now on. */
  onExec(handler: ExecHandler): void;
  /** The files of a sandbox by absolute path. */
  files(sandboxId: string): Map<string, Uint8Array<ArrayBuffer>>;
  /** Cuts every connection, as a bad network would; clients come back by themselves. */
  disconnect(): void;
}

/**
 * A server inside the process, for tests of programs that use this client: no port, no sandbox, nothing runs. Commands get
 * the answers that the test scripts; files are a map, and checkpoints keep files alone. It has no time limits, no
 * lifetimes, no permissions, no archives, and no pools, keys, webhooks and drains: these answer `unimplemented`.
 */
export function createMemoryServer(): MemoryServer {
  const state = new MemoryState();
  const sockets = new Set<{ cut(): void }>();
  return {
    clientOptions: {
      url: state.url,
      apiKey: state.apiKey,
      fetch: createMemoryFetch(state),
      webSocket: createMemoryWebSocket(state, sockets),
    },
    get sandboxes() {
      return [...state.sandboxes.values()].map(({ resource }) => resource);
    },
    onExec(handler) {
      state.handler = handler;
    },
    files: (sandboxId) => state.sandbox(sandboxId).files,
    disconnect() {
      for (const socket of [...sockets]) socket.cut();
    },
  };
}
