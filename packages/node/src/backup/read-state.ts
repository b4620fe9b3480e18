import { fencedStateSchema, type ObjectStore, SandboxError, stateKey } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { Keyring } from "../auth/keyring.ts";
import { parseSavedSandbox, type SavedSandbox } from "../ownership/saved-sandbox.ts";
import { openObject } from "../store/sealed-objects.ts";

export type StateKind = "home" | "store";

export interface ReadState {
  /** Undefined if a node has claimed the sandbox and not saved anything yet. */
  readonly saved: SavedSandbox | undefined;
  /** The epoch of the lease under which it was claimed last; 0 on a standalone node. */
  readonly epoch: number;
}

/** Throws `object_damaged` or `state_damaged`. */
export function openState(
  keyring: Keyring,
  kind: StateKind,
  { id, bytes, store }: { readonly id: SandboxId; readonly bytes: Uint8Array; readonly store: ObjectStore },
): ReadState {
  const key = stateKey(id);
  const opened = openObject(keyring, key, bytes);
  if ("fault" in opened) throw damaged(store, key, opened.fault);
  try {
    const json: unknown = JSON.parse(opened.content.toString());
    if (kind === "home") return { saved: parseSavedSandbox(json), epoch: 0 };
    const { epoch, content } = fencedStateSchema.parse(json);
    return { epoch, saved: content === undefined ? undefined : parseSavedSandbox(content) };
  } catch (thrown) {
    throw damaged(store, key, thrown instanceof Error ? thrown.message : String(thrown));
  }
}

function damaged({ label }: ObjectStore, key: string, fault: string): SandboxError {
  return new SandboxError("object_damaged", {
    message: `cannot read ${key} in ${label}: ${fault}`,
    details: { key, store: label },
  });
}
