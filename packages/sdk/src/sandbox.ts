import type { CallOptions } from "./call-options.ts";
import { Client } from "./client.ts";
import type { ClientOptions } from "./client-options.ts";
import type { SandboxHandle } from "./sandbox-handle.ts";
import type { CreateOptions, ListOptions } from "./sandboxes.ts";

export interface ConnectOptions extends CallOptions, ClientOptions {
  /** The sandbox's token, in place of a key. */
  readonly token?: string | undefined;
}

export type Sandbox = SandboxHandle;

/** For programs with one node and few sandboxes: each call creates its own `Client`. */
export const Sandbox = {
  /** Creates a sandbox; resolves when it is ready. */
  async create(options: CreateOptions & ClientOptions = {}): Promise<Sandbox> {
    const { url, apiKey, fetch, webSocket, reconnectTimeoutMs, timing, ...rest } = options;
    return await new Client({ url, apiKey, fetch, webSocket, reconnectTimeoutMs, timing }).sandboxes.create(rest);
  },

  /** Returns a handle of an existing sandbox; its token is enough. */
  async connect(id: string, { token, ...options }: ConnectOptions = {}): Promise<Sandbox> {
    const client = new Client(token === undefined ? options : { ...options, apiKey: token });
    return await client.sandboxes.connect(id, options);
  },

  /** All matching sandboxes, newest first, page by page. */
  list(options: ListOptions & ClientOptions = {}): AsyncGenerator<Sandbox, void, undefined> {
    return new Client(options).sandboxes.list(options);
  },
} as const;
