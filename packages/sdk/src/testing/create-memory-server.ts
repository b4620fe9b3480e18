import type { SandboxResource } from "@sandpiper/protocol";
import type { WebSocketConstructor } from "../socket/web-socket.ts";
import { createMemoryFetch } from "./memory-fetch.ts";
import type { MemoryNetwork } from "./memory-network.ts";
import type { ExecHandler } from "./memory-process.ts";
import { createMemoryWebSocket } from "./memory-socket.ts";
import { MemoryState } from "./memory-state.ts";

export interface MemoryServer {
  /** Options for `new Client(…)`, `Sandbox.create(…)` and so on. */
  readonly clientOptions: {
    readonly url: string;
    readonly apiKey: string;
    readonly fetch: typeof fetch;
    readonly webSocket: WebSocketConstructor;
  };
  readonly sandboxes: readonly SandboxResource[];
  /** Sets the handler for all later commands. */
  onExec(handler: ExecHandler): void;
  /** The files of a sandbox by absolute path. */
  files(sandboxId: string): Map<string, Uint8Array<ArrayBuffer>>;
  /** The network log of a sandbox, and its hosts that wait for a decision. */
  network(sandboxId: string): MemoryNetwork;
  /** Cuts every connection, like a bad network; clients reconnect. */
  disconnect(): void;
}

/**
 * An in-process server for tests of programs that use this client. It opens no port and runs no code: the test scripts the
 * answers to commands, files are a map, and checkpoints keep only files. It has no time limits, lifetimes, permissions,
 * archives, pools, keys, webhooks, drains or sessions; these answer `unimplemented`.
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
    network: (sandboxId) => state.sandbox(sandboxId).network,
    disconnect() {
      for (const socket of [...sockets]) socket.cut();
    },
  };
}
