import { isIP } from "node:net";
import { type FlowReason, parseHostName } from "@sandpiper/protocol";
import { readClientHello } from "./client-hello.ts";
import { readHttpHost } from "./http-host.ts";

export type Inspection =
  | { readonly kind: "waiting" }
  /** Bytes to send on; `isDone` if nothing that follows needs a look. */
  | { readonly kind: "passed"; readonly bytes: Buffer; readonly isDone: boolean }
  | { readonly kind: "refused"; readonly reason: FlowReason };

/** Whether a client may state this host in its connection. */
export type IsOwnHost = (host: string | null) => boolean;

const waiting: Inspection = { kind: "waiting" };
const refusedTls: Inspection = { kind: "refused", reason: "tls_name_mismatch" };
const refusedHttp: Inspection = { kind: "refused", reason: "http_host_mismatch" };

/** Enough for a hello of the largest size in the smallest records. */
const MAX_BYTES = 512 * 1024;

/**
 * Finds the host that a client states in its first bytes, in TLS or HTTP, and holds what a server would act on until it is
 * checked. Bytes of other protocols pass at once.
 */
export class FirstBytes {
  readonly #isOwnHost: IsOwnHost;
  #chunks: Buffer[] = [];
  #size = 0;
  #need = 1;
  #passed = 0;
  #isTls = false;

  /** The host is a name as `parseHostName` returns it, an address, or null for TLS without a server name. */
  constructor(isOwnHost: IsOwnHost) {
    this.#isOwnHost = isOwnHost;
  }

  push(chunk: Uint8Array): Inspection {
    // A copy: the memory of a chunk is reused when the next one is read.
    this.#chunks.push(Buffer.from(chunk));
    this.#size += chunk.byteLength;
    if (this.#size < this.#need) return waiting;
    const bytes = this.#chunks.length === 1 ? (this.#chunks[0] as Buffer) : Buffer.concat(this.#chunks);
    this.#chunks = [bytes];
    const result = this.#readTls(bytes);
    return result.kind === "waiting" && this.#size > MAX_BYTES ? refusedTls : result;
  }

  /** The client has ended its direction: nothing that is still held could be served. */
  end(): Inspection {
    if (this.#size === this.#passed) return { kind: "passed", bytes: Buffer.alloc(0), isDone: true };
    return this.#isTls ? refusedTls : refusedHttp;
  }

  #readTls(bytes: Buffer): Inspection {
    const hello = readClientHello(bytes);
    this.#isTls = hello.kind !== "other";
    switch (hello.kind) {
      case "incomplete":
        this.#need = hello.need;
        return waiting;
      case "malformed":
        return refusedTls;
      case "hello":
        return this.#isServerName(hello.serverName) ? this.#pass(bytes, true) : refusedTls;
      case "other":
        return this.#readHttp(bytes);
    }
  }

  #readHttp(bytes: Buffer): Inspection {
    const request = readHttpHost(bytes);
    switch (request.kind) {
      case "line":
        return this.#pass(bytes, false);
      case "head":
        return waiting;
      case "other":
        return this.#pass(bytes, true);
      case "malformed":
        return refusedHttp;
      case "request":
        return request.hosts.every((host) => this.#isHost(host)) ? this.#pass(bytes, true) : refusedHttp;
    }
  }

  #pass(bytes: Buffer, isDone: boolean): Inspection {
    const rest = bytes.subarray(this.#passed);
    this.#passed = bytes.length;
    return { kind: "passed", bytes: rest, isDone };
  }

  #isServerName(name: string | null): boolean {
    return name === null ? this.#isOwnHost(null) : this.#isHost(name);
  }

  #isHost(text: string): boolean {
    const host = isIP(text) === 0 ? parseHostName(text) : text;
    return host !== undefined && this.#isOwnHost(host);
  }
}

/** Thrown where a client states a host that is not its own. */
export class RefusedHost extends Error {
  readonly reason: FlowReason;

  constructor(reason: FlowReason) {
    super(`the connection states another host: ${reason}`);
    this.reason = reason;
  }
}

/** The bytes of a client, as soon as they may be sent on. Throws `RefusedHost`. */
export async function* inspected(
  source: AsyncIterable<Uint8Array>,
  isOwnHost: IsOwnHost,
): AsyncGenerator<Uint8Array, void, undefined> {
  const first = new FirstBytes(isOwnHost);
  let isDone = false;
  for await (const chunk of source) {
    if (isDone) {
      yield chunk;
      continue;
    }
    const result = first.push(chunk);
    if (result.kind === "refused") throw new RefusedHost(result.reason);
    if (result.kind === "waiting") continue;
    isDone = result.isDone;
    yield result.bytes;
  }
  if (isDone) return;
  const last = first.end();
  if (last.kind === "refused") throw new RefusedHost(last.reason);
}
