import type { CallOptions } from "./call-options.ts";
import { Client } from "./client.ts";
import type { ClientOptions } from "./client-options.ts";
import type { SandboxHandle } from "./sandbox-handle.ts";
import type { CreateOptions, ListOptions } from "./sandboxes.ts";

export interface ConnectOptions extends CallOptions, ClientOptions {
  /** Of the sandbox, in place of a key. */
  readonly token?: string | undefined;
}

export type Sandbox = SandboxHandle;

/** The short way, for whoever has one node and few sandboxes: each call makes a `Client` of its own. */
export const Sandbox = {
  /** Makes a sandbox; resolves when it is ready to be used. */
  async create(options: CreateOptions & ClientOptions = {}): Promise<Sandbox> {
    const { url, apiKey, fetch, webSocket, reconnectTimeoutMs, timing, ...rest } = options;
    return await new Client({ url, apiKey, fetch, webSocket, reconnectTimeoutMs, timing }).sandboxes.create(rest);
  },

  /** A handle of a sandbox that is there; its own token is enough. */
  async connect(id: string, { token, ...options }: ConnectOptions = {}): Promise<Sandbox> {
    const client = new Client(token === undefined ? options : { ...options, apiKey: token });
    return await client.sandboxes.connect(id, options);
  },

  /** Every sandbox that fits, newest first, page after page. */
  list(options: ListOptions & ClientOptions = {}): AsyncGenerator<Sandbox, void, undefined> {
    return new Client(options).sandboxes.list(options);
  },
} as const;
