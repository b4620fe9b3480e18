/**
 * What the first bytes of a connection say about TLS. `need` is how many bytes there must be before another look is worth it.
 */
export type HelloReading =
  | { readonly kind: "incomplete"; readonly need: number }
  /** Not TLS. */
  | { readonly kind: "other" }
  /** It begins like TLS, but no server would accept it, or readers could disagree about it. */
  | { readonly kind: "malformed" }
  | ClientHello;

export interface ClientHello {
  readonly kind: "hello";
  /** Null without a server name. */
  readonly serverName: string | null;
  /** The protocols that the client offers in ALPN, its favourite first; empty if it offers none. */
  readonly protocols: readonly string[];
}

const HANDSHAKE = 0x16;
const CLIENT_HELLO = 1;
const RECORD_HEADER_BYTES = 5;
const MAX_RECORD_BYTES = 16_384;
const HANDSHAKE_HEADER_BYTES = 4;
/** Hellos with post-quantum keys and session tickets have a few kilobytes. */
const MAX_HELLO_BYTES = 65_536;
const SERVER_NAME = 0;
const HOST_NAME = 0;
const APPLICATION_PROTOCOLS = 16;

const malformed: HelloReading = { kind: "malformed" };

/**
 * Finds the server name and the protocols in a ClientHello, which may be split into any number of records. Other extensions
 * are skipped, also those of encrypted hellos, whose decoys every browser sends.
 */
export function readClientHello(bytes: Buffer): HelloReading {
  if (bytes[0] !== undefined && bytes[0] !== HANDSHAKE) return { kind: "other" };
  if (bytes.length < 2) return { kind: "incomplete", need: 2 };
  if (bytes[1] !== 3) return { kind: "other" };
  const fragments: Buffer[] = [];
  let size = 0;
  let total = HANDSHAKE_HEADER_BYTES;
  for (let at = 0; size < total; ) {
    if (bytes.length < at + RECORD_HEADER_BYTES) return { kind: "incomplete", need: at + RECORD_HEADER_BYTES };
    const length = bytes.readUInt16BE(at + 3);
    if (bytes[at] !== HANDSHAKE || bytes[at + 1] !== 3 || length === 0 || length > MAX_RECORD_BYTES) return malformed;
    const end = at + RECORD_HEADER_BYTES + length;
    if (bytes.length < end) return { kind: "incomplete", need: end };
    fragments.push(bytes.subarray(at + RECORD_HEADER_BYTES, end));
    size += length;
    at = end;
    if (size < HANDSHAKE_HEADER_BYTES) continue;
    const header = Buffer.concat(fragments.slice(0, HANDSHAKE_HEADER_BYTES), HANDSHAKE_HEADER_BYTES);
    if (header[0] !== CLIENT_HELLO) return malformed;
    total = HANDSHAKE_HEADER_BYTES + header.readUIntBE(1, 3);
    if (total > MAX_HELLO_BYTES) return malformed;
  }
  const hello = fragments.length === 1 ? (fragments[0] as Buffer) : Buffer.concat(fragments);
  return readExtensions(new Reader(hello.subarray(HANDSHAKE_HEADER_BYTES, total)));
}

function readExtensions(hello: Reader): HelloReading {
  hello.take(2 + 32); // version and random
  hello.take(hello.number(1)); // session id
  hello.take(hello.number(2)); // cipher suites
  hello.take(hello.number(1)); // compression methods
  if (hello.isFaulty) return malformed;
  if (hello.isAtEnd) return { kind: "hello", serverName: null, protocols: [] };
  const extensions = new Reader(hello.take(hello.number(2)));
  if (hello.isFaulty || !hello.isAtEnd) return malformed;
  const found = new Map<number, Reader>();
  while (!extensions.isAtEnd) {
    const type = extensions.number(2);
    const content = new Reader(extensions.take(extensions.number(2)));
    if (extensions.isFaulty) return malformed;
    if (type !== SERVER_NAME && type !== APPLICATION_PROTOCOLS) continue;
    // A second one could be the one that the server reads.
    if (found.has(type)) return malformed;
    found.set(type, content);
  }
  const serverName = readServerName(found.get(SERVER_NAME));
  const protocols = readProtocols(found.get(APPLICATION_PROTOCOLS));
  if (serverName === undefined || protocols === undefined) return malformed;
  return { kind: "hello", serverName, protocols };
}

/** Null without the extension, undefined if it is malformed. */
function readServerName(content: Reader | undefined): string | null | undefined {
  if (content === undefined) return null;
  const names = new Reader(content.take(content.number(2)));
  const kind = names.number(1);
  const name = names.take(names.number(2));
  const isFaulty = content.isFaulty || names.isFaulty || !content.isAtEnd || !names.isAtEnd;
  return isFaulty || kind !== HOST_NAME ? undefined : name.toString("latin1");
}

/** Undefined if the extension is malformed. */
function readProtocols(content: Reader | undefined): readonly string[] | undefined {
  if (content === undefined) return [];
  const list = new Reader(content.take(content.number(2)));
  const protocols: string[] = [];
  while (!list.isAtEnd) protocols.push(list.take(list.number(1)).toString("latin1"));
  return content.isFaulty || list.isFaulty || !content.isAtEnd ? undefined : protocols;
}

/** Reads past the end give zeros and are remembered. */
class Reader {
  readonly #bytes: Buffer;
  #at = 0;
  isFaulty = false;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  number(size: 1 | 2): number {
    const bytes = this.take(size);
    return this.isFaulty ? 0 : bytes.readUIntBE(0, size);
  }

  take(size: number): Buffer {
    const end = this.#at + size;
    if (end > this.#bytes.length) {
      this.isFaulty = true;
      this.#at = this.#bytes.length;
      return Buffer.alloc(0);
    }
    const bytes = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return bytes;
  }
}
