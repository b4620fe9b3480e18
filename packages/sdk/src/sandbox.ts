import type { CallOptions } from "./call-options.ts";
import { Client } from "./client.ts";
import type { ClientOptions } from "./client-options.ts";
import type { SandboxHandle } from "./sandbox-handle.ts";
import type { CreateOptions, ListOptions } from "./sandboxes.ts";

export type Sandbox = SandboxHandle;

/** The short way, for whoever has one node and few sandboxes: each call makes a `Client` of its own. */
export const Sandbox = {
  /** Makes a sandbox; resolves when it is ready to be used. */
  async create(options: CreateOptions & ClientOptions = {}): Promise<Sandbox> {
    const { url, apiKey, fetch, webSocket, reconnectTimeoutMs, timing, ...rest } = options;
    return await new Client({ url, apiKey, fetch, webSocket, reconnectTimeoutMs, timing }).sandboxes.create(rest);
  },

  /** A handle of a sandbox that is there. */
  async connect(id: string, options: CallOptions & ClientOptions = {}): Promise<Sandbox> {
    return await new Client(options).sandboxes.connect(id, options);
  },

  /** Every sandbox that fits, newest first, page after page. */
  list(options: ListOptions & ClientOptions = {}): AsyncGenerator<Sandbox, void, undefined> {
    return new Client(options).sandboxes.list(options);
  },
} as const;
