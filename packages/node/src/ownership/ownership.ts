import type { CheckpointRequirements } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import type { SavedSandbox } from "./saved-sandbox.ts";

/** A sandbox's state in the store, as its owner reads and writes it. */
export interface OwnedState {
  /** The state committed last; undefined if there is none. */
  readonly content: SavedSandbox | undefined;
  /** Rejects with `lease_lost` if another node owns the sandbox by now. */
  commit(content: SavedSandbox): Promise<void>;
}

/** A node's right to run sandboxes: a lease each in a cluster, unconditional on a standalone node. */
export interface Ownership {
  /** Takes ownership of a new sandbox. Resolves to the lease's epoch, or null where there are no leases. */
  begin(record: SandboxRecord, requirements: () => Promise<CheckpointRequirements>): Promise<number | null>;
  /** Whether this node owns the sandbox. */
  has(id: SandboxId): boolean;
  /** Throws unless this node owns the sandbox. */
  state(id: SandboxId): Promise<OwnedState>;
  /** Reads the stored state of any sandbox, also of one that another node owns. */
  peek(id: SandboxId): Promise<SavedSandbox | undefined>;
  /** While a client is attached, other nodes get the sandbox only with a takeover. */
  setAttached(id: SandboxId, isAttached: boolean): Promise<void>;
  /** Deletes the stored state and gives up ownership: the sandbox is destroyed. */
  remove(id: SandboxId): Promise<void>;
}
