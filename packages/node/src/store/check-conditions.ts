import { randomUUID } from "node:crypto";
import { type ObjectStore, SandboxError } from "@sandpiper/core";

/** Tries each kind of conditional write on a temporary object. Throws if the store ignores one. */
export async function checkConditions(store: Pick<ObjectStore, "label" | "put" | "delete">): Promise<void> {
  const key = `probes/${randomUUID()}`;
  const empty = new Uint8Array(0);
  const first = await store.put(key, empty, { ifAbsent: true });
  try {
    const second = await store.put(key, empty);
    if (first === undefined || second === undefined || first === second) throw unsuitable(store.label, "tags");
    if ((await store.put(key, empty, { ifAbsent: true })) !== undefined) throw unsuitable(store.label, "If-None-Match");
    if ((await store.put(key, empty, { ifMatch: first })) !== undefined) throw unsuitable(store.label, "If-Match");
    if (await store.delete(key, { ifMatch: first })) throw unsuitable(store.label, "If-Match on DELETE");
  } finally {
    await store.delete(key);
  }
}

/** Checks a store once; a check that fails is repeated by the next call. */
export function conditionCheck(store: Pick<ObjectStore, "label" | "put" | "delete">): () => Promise<void> {
  let check: Promise<void> | undefined;
  return () => {
    check ??= checkConditions(store).catch((thrown) => {
      check = undefined;
      throw thrown;
    });
    return check;
  };
}

function unsuitable(label: string, ignored: string): SandboxError {
  return new SandboxError("store_lacks_conditions", {
    message: `the server of the store ${label} does not support conditional writes: it ignores ${ignored}`,
  });
}
