const HANDSHAKE = 22;
const CLIENT_HELLO = 1;
const RECORD_HEADER_BYTES = 5;
const MESSAGE_HEADER_BYTES = 4;
const VERSION_AND_RANDOM_BYTES = 34;
const SERVER_NAME = 0;
const APPLICATION_PROTOCOLS = 16;
/** Larger than those of browsers with post-quantum keys; a sandbox must not make the node collect more. */
const MAX_HELLO_BYTES = 16 * 1024;

export interface ClientHello {
  readonly serverName: string | undefined;
  /** The protocols that the client offers in ALPN, its favourite first; empty if it offers none. */
  readonly protocols: readonly string[];
}

/** `more` if the message is not complete, `other` if it is not the start of a TLS connection. */
export type HelloResult = ClientHello | "more" | "other";

/** Reads the first message of a TLS client, which may be split over several records. */
export function readClientHello(bytes: Uint8Array): HelloResult {
  try {
    return parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
  } catch (thrown) {
    // A length inside the message points beyond its end.
    if (thrown instanceof RangeError) return "other";
    throw thrown;
  }
}

function parse(bytes: Buffer): HelloResult {
  const message = handshakeBytes(bytes);
  if (message === undefined) return "other";
  if (message.length > 0 && message[0] !== CLIENT_HELLO) return "other";
  const size = message.length < MESSAGE_HEADER_BYTES ? undefined : MESSAGE_HEADER_BYTES + message.readUIntBE(1, 3);
  if (size !== undefined && size > MAX_HELLO_BYTES) return "other";
  if (size === undefined || message.length < size) return "more";
  const reader = new Reader(message.subarray(MESSAGE_HEADER_BYTES, size));
  reader.take(VERSION_AND_RANDOM_BYTES);
  reader.block(1); // session
  reader.block(2); // ciphers
  reader.block(1); // compression
  const extensions = new Map<number, Buffer>();
  const rest = reader.isAtEnd ? new Reader(Buffer.alloc(0)) : new Reader(reader.block(2));
  while (!rest.isAtEnd) extensions.set(rest.number(2), rest.block(2));
  return {
    serverName: serverNameOf(extensions.get(SERVER_NAME)),
    protocols: protocolsOf(extensions.get(APPLICATION_PROTOCOLS)),
  };
}

/** The content of all records that are complete or begun; undefined if one is not of a handshake. */
function handshakeBytes(bytes: Buffer): Buffer | undefined {
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    if (bytes[at] !== HANDSHAKE) return undefined;
    if (bytes.length < at + RECORD_HEADER_BYTES) break;
    const end = at + RECORD_HEADER_BYTES + bytes.readUInt16BE(at + 3);
    parts.push(bytes.subarray(at + RECORD_HEADER_BYTES, end));
    at = end;
  }
  return Buffer.concat(parts);
}

function serverNameOf(extension: Buffer | undefined): string | undefined {
  if (extension === undefined) return undefined;
  const names = new Reader(new Reader(extension).block(2));
  while (!names.isAtEnd) {
    const [kind, name] = [names.number(1), names.block(2)];
    if (kind === 0) return name.toString("latin1").toLowerCase();
  }
  return undefined;
}

function protocolsOf(extension: Buffer | undefined): readonly string[] {
  if (extension === undefined) return [];
  const list = new Reader(new Reader(extension).block(2));
  const protocols: string[] = [];
  while (!list.isAtEnd) protocols.push(list.block(1).toString("latin1"));
  return protocols;
}

/** Throws a `RangeError` at the end of its bytes. */
class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  take(count: number): Buffer {
    if (this.#at + count > this.#bytes.length) throw new RangeError("a length exceeds the message");
    this.#at += count;
    return this.#bytes.subarray(this.#at - count, this.#at);
  }

  number(sizeBytes: number): number {
    return this.take(sizeBytes).readUIntBE(0, sizeBytes);
  }

  /** A length of this many bytes, and as many bytes. */
  block(lengthBytes: number): Buffer {
    return this.take(this.number(lengthBytes));
  }
}
