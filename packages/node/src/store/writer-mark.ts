import { randomBytes } from "node:crypto";

const MARK_BYTES = 18;
const NEWLINE = 0x0a;
/** A newline, so that text stays readable, and the mark in base64. */
export const MARK_LENGTH = 1 + (MARK_BYTES / 3) * 4;

/** Unlike anybody else's, and unlike every other of the same writer. */
export function createMark(): Uint8Array {
  return Buffer.from(`\n${randomBytes(MARK_BYTES).toString("base64url")}`);
}

/** Undefined: these bytes end in no mark. */
export function splitMark(stored: Uint8Array): { readonly bytes: Uint8Array; readonly mark: Uint8Array } | undefined {
  const end = stored.length - MARK_LENGTH;
  if (end < 0 || stored[end] !== NEWLINE) return undefined;
  return { bytes: stored.subarray(0, end), mark: stored.subarray(end) };
}
