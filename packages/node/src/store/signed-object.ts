import { createHmac, timingSafeEqual } from "node:crypto";
import type { Keyring } from "../auth/keyring.ts";

const FORMAT = "sandpiper-1";
const PURPOSE = "control objects";
const NEWLINE = 0x0a;
const SEQUENCE_DIGITS = 16;
const TRAILER = /^sandpiper-1 ([0-9a-f]{8}) (\d{16}) ([A-Za-z0-9_-]{43})$/;

/** A newline, the format, the id of the secret, the sequence number and the signature. */
export const TRAILER_LENGTH = 1 + FORMAT.length + 1 + 8 + 1 + SEQUENCE_DIGITS + 1 + 43;

export interface SignedContent {
  readonly content: Uint8Array;
  readonly secretId: string;
  /** Increases with every write of the object. */
  readonly sequence: number;
}

/** The reason why an object is not accepted. */
export type SignatureFault =
  | { readonly fault: "unsigned" }
  | { readonly fault: "unknown secret"; readonly secretId: string }
  | { readonly fault: "invalid" };

export interface SignedName {
  /** The key of the object in the store: a valid object is not valid under another key. */
  readonly key: string;
  readonly sequence: number;
}

/** Appends a line with the signature, so that the content stays readable. */
export function signObject(keyring: Keyring, { key, sequence }: SignedName, content: Uint8Array): Uint8Array {
  const number = String(sequence).padStart(SEQUENCE_DIGITS, "0");
  const secretId = keyring.currentId;
  const signature = sign(keyring.key(PURPOSE) as Buffer, [secretId, number, key], content);
  return Buffer.concat([content, Buffer.from(`\n${FORMAT} ${secretId} ${number} ${signature}`)]);
}

/** The content of a signed object, before its signature is checked; undefined if it has none. */
export function contentOf(stored: Uint8Array): Uint8Array | undefined {
  return trailerOf(stored) === undefined ? undefined : stored.subarray(0, stored.length - TRAILER_LENGTH);
}

/** The format of an object that this version cannot read but whose last line looks signed; undefined for others. */
export function signatureFormat(stored: Uint8Array): number | undefined {
  const lastLine = Buffer.from(stored.subarray(stored.lastIndexOf(NEWLINE) + 1)).toString("latin1");
  const format = /^sandpiper-(\d{1,6}) /.exec(lastLine)?.[1];
  return format === undefined ? undefined : Number(format);
}

export function verifyObject(keyring: Keyring, key: string, stored: Uint8Array): SignedContent | SignatureFault {
  const trailer = trailerOf(stored);
  if (trailer === undefined) return { fault: "unsigned" };
  const { secretId, number, signature } = trailer;
  const secret = keyring.key(PURPOSE, { secretId });
  if (secret === undefined) return { fault: "unknown secret", secretId };
  const content = stored.subarray(0, stored.length - TRAILER_LENGTH);
  const expected = sign(secret, [secretId, number, key], content);
  if (!timingSafeEqual(Buffer.from(expected), Buffer.from(signature))) return { fault: "invalid" };
  return { content, secretId, sequence: Number(number) };
}

function trailerOf(stored: Uint8Array) {
  const end = stored.length - TRAILER_LENGTH;
  if (end < 0 || stored[end] !== NEWLINE) return undefined;
  const [, secretId = "", number = "", signature = ""] =
    TRAILER.exec(Buffer.from(stored.subarray(end + 1)).toString("latin1")) ?? [];
  return signature === "" ? undefined : { secretId, number, signature };
}

/** The first line is JSON, which contains no newline, so no two inputs have the same bytes. */
function sign(key: Buffer, parts: readonly string[], content: Uint8Array): string {
  return createHmac("sha256", key)
    .update(`${JSON.stringify([FORMAT, ...parts])}\n`)
    .update(content)
    .digest("base64url");
}
