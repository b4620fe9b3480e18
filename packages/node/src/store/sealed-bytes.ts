import { createCipheriv, createDecipheriv, createHmac, randomBytes } from "node:crypto";

/** The first byte of sealed data. Earlier versions stored chunks that begin with 0 or 1, and JSON, in clear text. */
const FORMAT = 2;
const FIRST_PRINTABLE = 0x20;
const CIPHER = "aes-256-gcm";
const SECRET_ID_BYTES = 4;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** The format, a byte for the caller, and the id of the secret. */
const CLEAR_BYTES = 2 + SECRET_ID_BYTES;
const HEADER_BYTES = CLEAR_BYTES + NONCE_BYTES;

export interface SealOptions {
  /** Where the data is stored. Data that was moved to another name does not open. */
  readonly name: string;
  /** The key of the current secret. */
  readonly key: Uint8Array;
  readonly secretId: string;
  /** Stored in clear text, and authenticated. */
  readonly kind: number;
}

export interface OpenOptions {
  readonly name: string;
  /** Undefined if this node does not have the secret. */
  readonly keyOf: (secretId: string) => Uint8Array | undefined;
}

export type Opened = { readonly content: Buffer; readonly kind: number } | Fault;

export interface Fault {
  readonly fault: string;
  /** Set for data of a newer version, which is not damaged. */
  readonly newer?: { readonly found: number; readonly known: number } | undefined;
}

/**
 * Encrypts and authenticates data. Each name has a key of its own. Nodes may write a name several times, and compress the same
 * content differently, so each write has a random nonce.
 */
export function seal(content: Uint8Array, { name, key, secretId, kind }: SealOptions): readonly Uint8Array[] {
  const nonce = randomBytes(NONCE_BYTES);
  const clear = Buffer.from([FORMAT, kind, ...Buffer.from(secretId, "hex")]);
  const cipher = createCipheriv(CIPHER, keyFor(name, key), nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.concat([clear, Buffer.from(name)]));
  const encrypted = cipher.update(content);
  cipher.final();
  return [clear, nonce, encrypted, cipher.getAuthTag()];
}

/** The secret that sealed the data, before it is authenticated; undefined for data in clear text. */
export function secretIdOf(stored: Uint8Array): string | undefined {
  return stored[0] === FORMAT ? Buffer.from(stored.subarray(2, CLEAR_BYTES)).toString("hex") : undefined;
}

/** The fault completes a sentence that names the data. */
export function open(stored: Uint8Array, { name, keyOf }: OpenOptions): Opened {
  const found = stored[0] ?? 0;
  // Sealed data begins with its format; text, as an earlier version wrote it, begins with a printable character.
  if (found > FORMAT && found < FIRST_PRINTABLE) return newer({ found, known: FORMAT });
  if (found !== FORMAT) return { fault: "it is not encrypted, as if an earlier version had written it" };
  if (stored.length < HEADER_BYTES + TAG_BYTES) return { fault: "it is truncated" };
  const clear = Buffer.from(stored.subarray(0, CLEAR_BYTES));
  const secretId = clear.toString("hex", 2);
  const key = keyOf(secretId);
  if (key === undefined) return { fault: `it is encrypted with the secret ${secretId}, which this node does not have` };
  const nonce = stored.subarray(CLEAR_BYTES, HEADER_BYTES);
  const decipher = createDecipheriv(CIPHER, keyFor(name, key), nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.concat([clear, Buffer.from(name)]));
  decipher.setAuthTag(stored.subarray(-TAG_BYTES));
  try {
    const content = decipher.update(stored.subarray(HEADER_BYTES, -TAG_BYTES));
    decipher.final();
    return { content, kind: clear[1] ?? 0 };
  } catch {
    return { fault: "it was changed or moved after a node had written it" };
  }
}

/** The fault of data in a format that only a newer version knows. */
export function newer(versions: { readonly found: number; readonly known: number }): Fault {
  const fault = `it has format ${versions.found}, but this node reads at most format ${versions.known}`;
  return { fault, newer: versions };
}

/** A key for each name keeps random nonces far from a repetition, and binds the data to its name. */
function keyFor(name: string, key: Uint8Array): Buffer {
  return createHmac("sha256", key).update(name).digest();
}
