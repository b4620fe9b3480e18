import type { FencedState } from "../fenced-state.ts";
import type { Lock } from "../lock.ts";

/** Checks every write that the store accepts, and throws on the first that breaks a promise. */
export class Audit {
  readonly #owners = new Map<number, string>();
  #lock: Lock | undefined;
  #state: FencedState | undefined;
  acquisitions = 0;
  commits = 0;

  onLock(writer: string, lock: Lock): void {
    const before = this.#lock;
    this.#lock = lock;
    if (before !== undefined && lock.epoch < before.epoch) throw new Error("an epoch was followed by a lower one");
    if (lock.owner === null) return;
    const owner = this.#owners.get(lock.epoch);
    if (owner === undefined) {
      this.acquisitions++;
      if (lock.owner !== writer) throw new Error(`${writer} made ${lock.owner} the owner`);
      this.#owners.set(lock.epoch, lock.owner);
    } else if (owner !== lock.owner) {
      throw new Error(`epoch ${lock.epoch} had two owners, ${owner} and ${lock.owner}`);
    }
  }

  onState(writer: string, state: FencedState): void {
    const before = this.#state;
    this.#state = state;
    const what = `${writer} wrote a state of epoch ${state.epoch}`;
    if (this.#owners.get(state.epoch) !== writer) throw new Error(`${what}, which it never had`);
    if (before !== undefined && state.epoch < before.epoch) throw new Error(`${what} over one of ${before.epoch}`);
    const isCommit = state.content !== before?.content;
    if (isCommit && state.epoch !== before?.epoch) throw new Error(`${what}, which was not claimed under that epoch`);
    if (isCommit) this.commits++;
  }

  /** The store holds the acknowledged commit or a later one. */
  onAcknowledged(content: number): void {
    if (typeof this.#state?.content !== "number" || this.#state.content < content) {
      throw new Error(`commit ${content} was acknowledged, but the store holds ${this.#state?.content}`);
    }
  }
}
