import { SandboxError } from "@sandpiper/protocol";
import { DEFAULT_PORT, findNodeAddress, ownEnvironment } from "@sandpiper/protocol/address";
import type { WebSocketConstructor } from "./socket/web-socket.ts";
import { systemTiming, type Timing } from "./timing.ts";

export const DEFAULT_URL = `http://127.0.0.1:${DEFAULT_PORT}`;
const DEFAULT_RECONNECT_TIMEOUT_MS = 60_000;

export interface ClientOptions {
  /** The node's URL; the default is SANDPIPER_URL, then http://127.0.0.1 with the port SANDPIPER_PORT or 4747. */
  readonly url?: string | undefined;
  /**
   * An API key, or the token of a sandbox. The default is SANDPIPER_API_KEY, then, if `url` is omitted, the file api-key in
   * SANDPIPER_HOME or ~/.sandpiper.
   */
  readonly apiKey?: string | undefined;
  /** Replaces the global fetch. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** Replaces the global WebSocket, or that of the package `ws` where there is none. */
  readonly webSocket?: WebSocketConstructor | undefined;
  /** How long the client retries after a lost connection or while a sandbox moves; 60 s by default. */
  readonly reconnectTimeoutMs?: number | undefined;
  /** For tests that control time. */
  readonly timing?: Timing | undefined;
}

/** The options, complete and checked. */
export interface ClientSpec {
  /** Without a trailing slash. */
  readonly baseUrl: string;
  readonly apiKey: string | undefined;
  readonly fetch: typeof globalThis.fetch;
  /** Undefined for the global one. */
  readonly webSocket: WebSocketConstructor | undefined;
  readonly reconnectTimeoutMs: number;
  readonly timing: Timing;
}

export function parseClientOptions(options: ClientOptions): ClientSpec {
  return Object.freeze({
    ...addressOf(options),
    // Browsers refuse a fetch that is called as a method of another object.
    fetch: options.fetch ?? ((input, init) => globalThis.fetch(input, init)),
    webSocket: options.webSocket,
    reconnectTimeoutMs: options.reconnectTimeoutMs ?? DEFAULT_RECONNECT_TIMEOUT_MS,
    timing: options.timing ?? systemTiming,
  });
}

function parseUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new SandboxError("invalid_url", {
      message: `url ${JSON.stringify(text)} is not the http or https address of a node`,
      hint: `leave it out for ${DEFAULT_URL}`,
    });
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
}

/** The key of this machine's node is for the node that the environment names, not for one that the program names. */
function addressOf({ url, apiKey }: ClientOptions): Pick<ClientSpec, "baseUrl" | "apiKey"> {
  if (url !== undefined) {
    return { baseUrl: parseUrl(url), apiKey: apiKey ?? (ownEnvironment()["SANDPIPER_API_KEY"] || undefined) };
  }
  const found = findNodeAddress();
  return { baseUrl: parseUrl(found.url), apiKey: apiKey ?? found.apiKey };
}
