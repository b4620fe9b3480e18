import {
  type Acquisition,
  type ClaimedState,
  type FencedStates,
  type Lease,
  type Leases,
  type LockWaiter,
  SandboxError,
} from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { Custody, HeldState } from "./ownership.ts";
import { parseSavedSandbox, type SavedSandbox, savedSandboxJson } from "./saved-sandbox.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";

export interface ClusterCustodyOptions {
  readonly leases: Leases;
  readonly states: FencedStates;
  readonly requirements: (record: SandboxRecord) => Promise<Readonly<Record<string, string>>>;
  /** Another node wants the sandbox. */
  readonly onWanted: (id: SandboxId, waiter: LockWaiter) => void;
  /** The sandbox is not this node's any more, and must not run here. */
  readonly onLost: (id: SandboxId) => void;
  /** The instant of `clock.monotonicMs()` until which the sandbox may run here; undefined: it need not be watched any more. */
  readonly onDeadline: (id: SandboxId, deadlineMs: number | undefined) => void;
}

interface Held {
  readonly lease: Lease;
  readonly claimed: ClaimedState;
  content: SavedSandbox | undefined;
}

/** The sandboxes of a node in a cluster: each is held by a lease, and only whoever has it writes its state. */
export class ClusterCustody implements Custody {
  readonly #options: ClusterCustodyOptions;
  readonly #held = new Map<SandboxId, Held>();
  /** Those with a client, also while their lock does not say so yet. */
  readonly #attached = new Set<SandboxId>();

  constructor(options: ClusterCustodyOptions) {
    this.#options = options;
  }

  async begin(record: SandboxRecord): Promise<number> {
    const { leases, requirements } = this.#options;
    const acquired = await leases.acquire(record.id);
    if (!("lease" in acquired)) throw notHeld(record.id);
    await this.take(record.id, acquired);
    const { epoch } = acquired.lease;
    const state = await this.state(record.id);
    await state.commit({ record, requirements: await requirements(record), checkpoints: [] });
    return epoch;
  }

  /** Makes a lease count: whatever earlier owners write from now on is refused. */
  async take(id: SandboxId, { lease }: Pick<Acquisition, "lease">): Promise<SavedSandbox | undefined> {
    const { states, onWanted, onLost, onDeadline } = this.#options;
    lease.onRenewed((deadlineMs) => {
      if (lease.isHeld) onDeadline(id, deadlineMs);
    });
    const claimed = await states.claim(id, lease.epoch);
    const content = claimed.content === undefined ? undefined : parseSavedSandbox(claimed.content);
    this.#held.set(id, { lease, claimed, content });
    lease.lost.addEventListener("abort", () => {
      if (this.#held.get(id)?.lease !== lease) return;
      this.#held.delete(id);
      onLost(id);
    });
    lease.onWaiter((waiter) => {
      // It read the lock before that told of the client; it is refused when it reads it again.
      if (this.#attached.has(id) && !waiter.takeover) lease.setAttached(true).catch(() => {});
      else onWanted(id, waiter);
    });
    return content;
  }

  has(id: SandboxId): boolean {
    return this.#held.has(id);
  }

  /** After a restart. False: it is not this node's any more. */
  async resume(id: SandboxId, epoch: number): Promise<boolean> {
    const lease = await this.#options.leases.resume(id, epoch);
    if (lease === undefined) return false;
    await this.take(id, { lease });
    // Whoever was attached to the program that ran before is so no more.
    await lease.setAttached(this.#attached.has(id));
    return true;
  }

  async peek(id: SandboxId): Promise<SavedSandbox | undefined> {
    const held = this.#held.get(id);
    if (held !== undefined) return held.content;
    const content = await this.#options.states.read(id);
    return content === undefined ? undefined : parseSavedSandbox(content);
  }

  async state(id: SandboxId): Promise<HeldState> {
    const held = this.#held.get(id);
    if (held === undefined) throw notHeld(id);
    return {
      content: held.content,
      commit: async (next) => {
        await held.claimed.commit(savedSandboxJson(next));
        held.content = next;
      },
    };
  }

  /** Whether a client is attached: whoever wants the sandbox without taking over is then refused. */
  async setAttached(id: SandboxId, isAttached: boolean): Promise<void> {
    if (isAttached) this.#attached.add(id);
    else this.#attached.delete(id);
    await this.#held.get(id)?.lease.setAttached(isAttached);
  }

  /** Somebody else may have it. */
  async release(id: SandboxId): Promise<void> {
    await this.#end(id, (lease) => lease.release());
  }

  async remove(id: SandboxId): Promise<void> {
    await this.#end(id, (lease) => lease.remove());
  }

  async #end(id: SandboxId, end: (lease: Lease) => Promise<void>): Promise<void> {
    const held = this.#held.get(id);
    if (held === undefined) return;
    this.#held.delete(id);
    try {
      await end(held.lease);
    } finally {
      this.unwatch(id);
    }
  }

  /** Nothing of it runs here any more. */
  unwatch(id: SandboxId): void {
    if (!this.#held.has(id)) this.#options.onDeadline(id, undefined);
  }
}

function notHeld(id: SandboxId): SandboxError {
  return new SandboxError("unavailable", {
    reason: "sandbox_moved",
    message: `sandbox ${id} is not on this node any more`,
    hint: "ask again: the request is then forwarded to the node that has it",
  });
}
