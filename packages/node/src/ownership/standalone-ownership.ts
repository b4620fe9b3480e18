import type { ObjectStore } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { OwnedState, Ownership } from "./ownership.ts";
import { parseSavedSandbox, type SavedSandbox, savedSandboxJson } from "./saved-sandbox.ts";

/** A standalone node owns all of its sandboxes, and writes a state only when there is a checkpoint to save. */
export class StandaloneOwnership implements Ownership {
  readonly #store: ObjectStore;

  constructor(store: ObjectStore) {
    this.#store = store;
  }

  async begin(): Promise<null> {
    return null;
  }

  has(): boolean {
    return true;
  }

  async peek(id: SandboxId): Promise<SavedSandbox | undefined> {
    const stored = await this.#store.get(keyOf(id));
    return stored && parseSavedSandbox(jsonOf(stored.bytes));
  }

  async state(id: SandboxId): Promise<OwnedState> {
    const content = await this.peek(id);
    return {
      content,
      commit: async (next) => {
        const json = savedSandboxJson(next, content?.unknown);
        await this.#store.put(keyOf(id), Buffer.from(JSON.stringify(json)));
      },
    };
  }

  /** Does nothing: no other node could take the sandbox. */
  async setAttached(): Promise<void> {}

  async remove(id: SandboxId): Promise<void> {
    await this.#store.delete(keyOf(id));
  }
}

function keyOf(id: SandboxId): string {
  return `states/${id}.state`;
}

/** Undefined for bytes that are not JSON, which is not a state either. */
function jsonOf(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString());
  } catch {
    return undefined;
  }
}
