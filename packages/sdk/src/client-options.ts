import { SandboxError } from "@sandpiper/protocol";
import type { WebSocketConstructor } from "./socket/web-socket.ts";
import { systemTiming, type Timing } from "./timing.ts";

export const DEFAULT_URL = "http://127.0.0.1:4747";
const DEFAULT_RECONNECT_TIMEOUT_MS = 60_000;

export interface ClientOptions {
  /** Of the node; SANDPIPER_URL by default, else http://127.0.0.1:4747. */
  readonly url?: string | undefined;
  /** An API key, or the token of a sandbox; SANDPIPER_API_KEY by default. */
  readonly apiKey?: string | undefined;
  /** Instead of the global fetch. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** Instead of the global WebSocket. */
  readonly webSocket?: WebSocketConstructor | undefined;
  /** How long a lost connection, or a sandbox that is on its way to another node, is tried again; 60 s by default. */
  readonly reconnectTimeoutMs?: number | undefined;
  /** For tests that own time. */
  readonly timing?: Timing | undefined;
}

/** Complete and checked. */
export interface ClientSpec {
  /** Without a slash at its end. */
  readonly baseUrl: string;
  readonly apiKey: string | undefined;
  readonly fetch: typeof globalThis.fetch;
  /** Undefined: the global one. */
  readonly webSocket: WebSocketConstructor | undefined;
  readonly reconnectTimeoutMs: number;
  readonly timing: Timing;
}

export function parseClientOptions(options: ClientOptions): ClientSpec {
  return Object.freeze({
    baseUrl: parseUrl(options.url ?? environment("SANDPIPER_URL") ?? DEFAULT_URL),
    apiKey: options.apiKey ?? environment("SANDPIPER_API_KEY"),
    // A fetch that is called as a method of something else is refused by browsers.
    fetch: options.fetch ?? ((input, init) => globalThis.fetch(input, init)),
    webSocket: options.webSocket,
    reconnectTimeoutMs: options.reconnectTimeoutMs ?? DEFAULT_RECONNECT_TIMEOUT_MS,
    timing: options.timing ?? systemTiming,
  });
}

function parseUrl(text: string): string {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new SandboxError("invalid_url", {
      message: `url ${JSON.stringify(text)} is not allowed; allowed is the http or https address of a node`,
      hint: `leave it out for ${DEFAULT_URL}`,
    });
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
}

/** Browsers have no environment. */
function environment(name: string): string | undefined {
  const holder = globalThis as { process?: { env?: Record<string, string | undefined> } };
  return holder.process?.env?.[name] || undefined;
}
