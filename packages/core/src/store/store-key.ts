import { SandboxError } from "@sandpiper/protocol";

/** Longer names do not fit into a directory entry with the store's suffix. */
const MAX_SEGMENT_LENGTH = 200;
/** S3's own limit is 1024 bytes, prefix included. */
const MAX_KEY_LENGTH = 800;

const SEGMENT = /^[A-Za-z0-9._=+:,@-]+$/;

/** All stores accept the same names, so that a directory and a bucket are interchangeable. */
export function checkStoreKey(key: string): void {
  if (!isSound(key.split("/")) || key.length > MAX_KEY_LENGTH) throw badKey("name of an object", key);
}

/** A prefix may end anywhere in a name, and may be empty. */
export function checkStorePrefix(prefix: string): void {
  const segments = prefix.split("/");
  const last = segments.pop() ?? "";
  if (!isSound(segments) || (last !== "" && !SEGMENT.test(last)) || prefix.length > MAX_KEY_LENGTH)
    throw badKey("prefix", prefix);
}

function isSound(segments: readonly string[]): boolean {
  return segments.every(
    (segment) => SEGMENT.test(segment) && segment !== "." && segment !== ".." && segment.length <= MAX_SEGMENT_LENGTH,
  );
}

function badKey(what: string, text: string): SandboxError {
  return new SandboxError("bad_store_key", {
    message: `${JSON.stringify(text.slice(0, 200))} is not a valid ${what} in a store`,
  });
}
