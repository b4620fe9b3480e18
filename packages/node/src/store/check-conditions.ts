import { randomUUID } from "node:crypto";
import { type ObjectStore, SandboxError } from "@sandpiper/core";

/** Tries every condition once on an object of its own, and refuses a store that does not know one. */
export async function checkConditions(store: Pick<ObjectStore, "label" | "put" | "delete">): Promise<void> {
  const key = `probes/${randomUUID()}`;
  const nothing = new Uint8Array(0);
  const first = await store.put(key, nothing, { ifAbsent: true });
  try {
    const second = await store.put(key, nothing);
    if (first === undefined || second === undefined || first === second) throw unsuitable(store.label, "tags");
    if ((await store.put(key, nothing, { ifAbsent: true })) !== undefined)
      throw unsuitable(store.label, "If-None-Match");
    if ((await store.put(key, nothing, { ifMatch: first })) !== undefined) throw unsuitable(store.label, "If-Match");
    if (await store.delete(key, { ifMatch: first })) throw unsuitable(store.label, "If-Match on DELETE");
  } finally {
    await store.delete(key);
  }
}

function unsuitable(label: string, what: string): SandboxError {
  return new SandboxError("failed_precondition", {
    reason: "store_lacks_conditions",
    message: `The server of the store ${label} ignores conditions of writes (${what})`,
    hint: "Use a server with conditional writes; docs/store.md names some.",
  });
}
