import { SandboxError } from "@sandpiper/protocol";
import type { StoredObjectInfo } from "./object-store.ts";

/** Twice the size of the largest chunk. */
const MAX_CHUNK_BYTES = 2 * 1024 * 1024;
/** The manifest of a checkpoint of 300 GB, or 100,000 keys. */
const MAX_OBJECT_BYTES = 64 * 1024 * 1024;

/** Nodes read an object into memory, so they refuse one that no node has written. Throws `object_damaged` if the object is larger than nodes write. Call before its bytes are in memory. */
export function checkObjectSize({ key, size, tag }: Omit<StoredObjectInfo, "modifiedAt">, store: string): void {
  const maxBytes = key.startsWith("chunks/") ? MAX_CHUNK_BYTES : MAX_OBJECT_BYTES;
  if (size <= maxBytes) return;
  throw new SandboxError("object_damaged", {
    message: `${key} in the store ${store} has more than ${maxBytes} bytes, so no node wrote it; the object was not changed`,
    details: { key, store, tag },
  });
}
