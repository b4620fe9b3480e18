import type { Clock, SandboxId } from "@sandpiper/protocol";
import type { ObjectStore } from "../store/object-store.ts";
import { type FencedState, fencedStateSchema, stateKey } from "./fenced-state.ts";
import { insist } from "./insist.ts";
import { JsonObject, type Versioned } from "./json-object.ts";
import type { Lease } from "./lease.ts";
import { leaseLost, stateReplayed } from "./lease-errors.ts";
import type { LeaseTiming } from "./lease-timing.ts";

export interface FencedStatesOptions {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly leases: {
    readonly timing: LeaseTiming;
    held(id: SandboxId): Lease | undefined;
  };
  readonly onError: (error: unknown) => void;
}

/** The state of one sandbox, for the holder of its lease. */
export interface ClaimedState {
  /** The last committed content, of any owner; undefined before the first. */
  readonly content: unknown;
  /**
   * Resolves when the content is stored for every later owner. Rejects with `lease_lost` when the lease has ended or a later
   * owner has claimed the state; the content may then have been stored before the lease ended.
   */
  commit(content: unknown): Promise<void>;
}

/**
 * The saved states of sandboxes, written by their owners. A new owner claims the state before it reads it; after that,
 * delayed writes of earlier owners fail.
 */
export class FencedStates {
  readonly #options: FencedStatesOptions;

  constructor(options: FencedStatesOptions) {
    this.#options = options;
  }

  /** The last committed content, readable without a lease; undefined before the first. */
  async read(id: SandboxId): Promise<unknown> {
    return (await this.#object(id).read())?.value.content;
  }

  async claim(id: SandboxId, epoch: number): Promise<ClaimedState> {
    const lease = this.#options.leases.held(id);
    if (lease === undefined || lease.epoch !== epoch) throw leaseLost(id, epoch);
    const object = this.#object(id);
    const nonce = crypto.randomUUID();
    let stored = await this.#underLease(lease, async () => {
      for (;;) {
        const known = await object.read();
        if (known?.value.nonce === nonce) return known;
        if (known !== undefined && known.value.epoch > epoch) throw leaseLost(id, epoch);
        if (known !== undefined && known.value.revision < lease.stateRevision) throw this.#replayed(id);
        if (!lease.isHeld) throw leaseLost(id, epoch);
        const { revision = 0, content } = known?.value ?? {};
        const written = await object.swap(known, { ...known?.value, epoch, revision: revision + 1, nonce, content });
        if (written !== undefined) return written;
      }
    });
    lease.noteState(stored.value.revision);
    let last: Promise<unknown> = Promise.resolve();
    return {
      content: stored.value.content,
      commit: (content) => {
        const result = last.then(async () => {
          stored = await this.#underLease(lease, this.#commit(lease, object, stored, content));
          lease.noteState(stored.value.revision);
        });
        last = result.catch(() => undefined);
        return result;
      },
    };
  }

  /** Repeated unchanged after a lost answer: it then finds its own nonce in place of the earlier version. */
  #commit(
    lease: Lease,
    object: JsonObject<FencedState>,
    known: Versioned<FencedState>,
    content: unknown,
  ): () => Promise<Versioned<FencedState>> {
    const { epoch, revision } = known.value;
    const next = { ...known.value, epoch, revision: revision + 1, nonce: crypto.randomUUID(), content };
    return async () => {
      for (let base = known; ; ) {
        if (!lease.isHeld) throw leaseLost(lease.id, epoch);
        const written = await object.swap(base, next);
        if (written !== undefined) return written;
        const current = await object.read();
        if (current?.value.nonce === next.nonce) return current;
        // The earlier version has another tag after it was encrypted with another secret, or put back by an operator.
        if (current?.value.nonce !== known.value.nonce) throw leaseLost(lease.id, epoch);
        base = current;
      }
    };
  }

  #replayed(id: SandboxId): Error {
    return stateReplayed(id, { key: stateKey(id), store: this.#options.store.label });
  }

  #underLease<T>(lease: Lease, work: () => Promise<T>): Promise<T> {
    const { clock, leases, onError } = this.#options;
    const options = {
      clock,
      retryMs: leases.timing.retryMs,
      signal: lease.lost,
      isInTime: () => lease.isHeld,
      onError,
      tooLate: (cause: unknown) => leaseLost(lease.id, lease.epoch, cause),
    };
    return insist(options, work);
  }

  #object(id: SandboxId): JsonObject<FencedState> {
    const { store, clock, leases } = this.#options;
    return new JsonObject({
      store,
      clock,
      key: stateKey(id),
      schema: fencedStateSchema,
      attemptMs: leases.timing.attemptMs,
    });
  }
}
