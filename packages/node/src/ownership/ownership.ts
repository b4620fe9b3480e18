import type { SandboxId } from "@sandpiper/protocol";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import type { SavedSandbox } from "./saved-sandbox.ts";

/** What the store knows of a sandbox, in the hands of the node that has it. */
export interface HeldState {
  /** As it was committed last; undefined: never. */
  readonly content: SavedSandbox | undefined;
  /** Rejects with `lease_lost` when the sandbox is another node's by now. */
  commit(content: SavedSandbox): Promise<void>;
}

/** Which sandboxes this node may run, and what it leaves of them for whoever runs them next. */
export interface Custody {
  /** Of a new sandbox. Gives the epoch of its lease; null where no other node can want it. */
  begin(record: SandboxRecord): Promise<number | null>;
  /** Whether this node has the sandbox. */
  has(id: SandboxId): boolean;
  /** Throws unless it does. */
  state(id: SandboxId): Promise<HeldState>;
  /** A look at what the store knows of any sandbox, whoever has it. */
  peek(id: SandboxId): Promise<SavedSandbox | undefined>;
  /** The sandbox was destroyed: nothing of it is left in the store. */
  remove(id: SandboxId): Promise<void>;
}
