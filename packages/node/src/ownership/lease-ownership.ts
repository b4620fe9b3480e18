import {
  type Acquisition,
  type CheckpointRequirements,
  type ClaimedState,
  type FencedStates,
  type Lease,
  type Leases,
  SandboxError,
} from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import type { OwnedState, Ownership } from "./ownership.ts";
import { parseSavedSandbox, type SavedSandbox, savedSandboxJson } from "./saved-sandbox.ts";

export interface LeaseOwnershipOptions {
  readonly leases: Leases;
  readonly states: FencedStates;
  /** The instant of `clock.monotonicMs()` until which the sandbox may run here; undefined once nothing of it runs here. */
  readonly onDeadline: (id: SandboxId, deadlineMs: number | undefined) => void;
}

interface Owned {
  readonly lease: Lease;
  readonly claimed: ClaimedState;
  content: SavedSandbox | undefined;
}

type Listener = (id: SandboxId) => void;

/** Ownership in a cluster: each sandbox is held by a lease, and only the holder writes its state. */
export class LeaseOwnership implements Ownership {
  readonly #options: LeaseOwnershipOptions;
  readonly #owned = new Map<SandboxId, Owned>();
  /** Sandboxes with an attached client, including those whose lock does not show it yet. */
  readonly #attached = new Set<SandboxId>();
  readonly #wantedListeners: Listener[] = [];
  readonly #lostListeners: Listener[] = [];

  constructor(options: LeaseOwnershipOptions) {
    this.#options = options;
  }

  /** Calls the listener when another node waits for a sandbox of this one. */
  onWanted(listener: Listener): void {
    this.#wantedListeners.push(listener);
  }

  /** Calls the listener when a lease is lost: the sandbox must no longer run here. */
  onLost(listener: Listener): void {
    this.#lostListeners.push(listener);
  }

  async begin(record: SandboxRecord, requirements: () => Promise<CheckpointRequirements>): Promise<number> {
    const acquired = await this.#options.leases.acquire(record.id);
    if (!("lease" in acquired)) throw notOwned(record.id);
    const { lease } = acquired;
    // A lease that is renewed without an owner would keep every node from the sandbox.
    await this.take(record.id, acquired).catch(async (thrown: unknown) => {
      await lease.remove().catch(() => lease.abandon());
      throw thrown;
    });
    const state = await this.state(record.id);
    await state.commit({ record, requirements: await requirements(), checkpoints: [] });
    return lease.epoch;
  }

  /** Puts a lease into effect: from now on the store refuses the writes of earlier owners. */
  async take(id: SandboxId, { lease }: Pick<Acquisition, "lease">): Promise<SavedSandbox | undefined> {
    const { states, onDeadline } = this.#options;
    lease.onRenewed((deadlineMs) => {
      if (lease.isHeld) onDeadline(id, deadlineMs);
    });
    const claimed = await states.claim(id, lease.epoch);
    const content = claimed.content === undefined ? undefined : parseSavedSandbox(claimed.content);
    this.#owned.set(id, { lease, claimed, content });
    lease.lost.addEventListener("abort", () => {
      if (this.#owned.get(id)?.lease !== lease) return;
      this.#owned.delete(id);
      for (const listener of this.#lostListeners) listener(id);
    });
    lease.onWaiter((waiter) => {
      // The waiter read the lock before it showed the client; it is refused when it reads the lock again.
      if (this.#attached.has(id) && !waiter.takeover) lease.setAttached(true).catch(() => {});
      else for (const listener of this.#wantedListeners) listener(id);
    });
    return content;
  }

  has(id: SandboxId): boolean {
    return this.#owned.has(id);
  }

  /**
   * Resumes a lease after a restart. Resolves to false if another node has taken it. If it rejects, the lease expires unless
   * this node acquires it again: its instance may still run.
   */
  async resume(id: SandboxId, epoch: number): Promise<boolean> {
    const lease = await this.#options.leases.resume(id, epoch);
    if (lease === undefined) return false;
    await this.take(id, { lease }).catch((thrown: unknown) => {
      lease.abandon();
      throw thrown;
    });
    // The clients of the previous process are gone.
    await lease.setAttached(this.#attached.has(id));
    return true;
  }

  async peek(id: SandboxId): Promise<SavedSandbox | undefined> {
    const owned = this.#owned.get(id);
    if (owned !== undefined) return owned.content;
    const content = await this.#options.states.read(id);
    return content === undefined ? undefined : parseSavedSandbox(content);
  }

  async state(id: SandboxId): Promise<OwnedState> {
    const owned = this.#owned.get(id);
    if (owned === undefined) throw notOwned(id);
    return {
      content: owned.content,
      commit: async (next) => {
        const unknown = owned.content?.unknown;
        await owned.claimed.commit(savedSandboxJson(next, unknown));
        owned.content = { ...next, unknown };
      },
    };
  }

  async setAttached(id: SandboxId, isAttached: boolean): Promise<void> {
    if (isAttached) this.#attached.add(id);
    else this.#attached.delete(id);
    await this.#owned.get(id)?.lease.setAttached(isAttached);
  }

  /** Lets another node take the sandbox. */
  async release(id: SandboxId): Promise<void> {
    await this.#end(id, (lease) => lease.release());
  }

  async remove(id: SandboxId): Promise<void> {
    await this.#end(id, (lease) => lease.remove());
  }

  async #end(id: SandboxId, end: (lease: Lease) => Promise<void>): Promise<void> {
    const owned = this.#owned.get(id);
    if (owned === undefined) return;
    this.#owned.delete(id);
    try {
      await end(owned.lease);
    } finally {
      this.unwatch(id);
    }
  }

  /** Ends the lease guard's watch: nothing of the sandbox runs here any more. */
  unwatch(id: SandboxId): void {
    if (!this.#owned.has(id)) this.#options.onDeadline(id, undefined);
  }
}

function notOwned(id: SandboxId): SandboxError {
  return new SandboxError("sandbox_moved", {
    message: `sandbox ${id} is no longer on this node`,
    hint: "retry: the node then forwards the request to the sandbox's owner",
  });
}
