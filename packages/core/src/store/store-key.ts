import { SandboxError } from "@sandpiper/protocol";

/** Longer names do not fit into one directory entry beside what a store adds to them. */
const MAX_SEGMENT_LENGTH = 200;
/** S3's own limit is 1024 bytes, prefix included. */
const MAX_KEY_LENGTH = 800;

const SEGMENT = /^[A-Za-z0-9._=+:,@-]+$/;

/** The same names are good in every store, so that what works with a directory works with a bucket. */
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
    message: `${JSON.stringify(text.slice(0, 200))} is no ${what} in a store`,
  });
}
