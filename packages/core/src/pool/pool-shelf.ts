import { abortError, type PoolResource } from "@sandpiper/protocol";
import type { BackOff } from "./back-off.ts";

/** An instance that waits to be claimed. */
export interface Shelved<Key, Member> {
  readonly member: Member;
  readonly shelf: PoolShelf<Key, Member>;
  readonly readyAtMs: number;
  /** Failures in a row when its boot started. */
  readonly streak: number;
  /** Reserved for one claim. */
  isClaimed: boolean;
}

/** A running boot; its instance is discarded if the boot has left its shelf. */
export interface Boot {
  readonly controller: AbortController;
  readonly streak: number;
}

export interface WarmPoolStats<Key> extends Readonly<Omit<PoolResource, "key">> {
  readonly key: Key;
}

type Claim<Key, Member> = (found: Shelved<Key, Member> | undefined) => void;

/** The pool of one key: instances, running boots, and claims that wait for them. */
export class PoolShelf<Key, Member> {
  readonly key: Key;
  readonly backOff: BackOff;
  /** Oldest first. */
  readonly members = new Set<Shelved<Key, Member>>();
  readonly boots = new Set<Boot>();
  target = 0;
  /** The pool's turn in which a boot last started here. */
  lastTurn = 0;
  hits = 0;
  misses = 0;
  failures = 0;
  totalWaitMs = 0;
  /** At most the number of boots. */
  readonly #claims = new Set<Claim<Key, Member>>();

  constructor(key: Key, backOff: BackOff) {
    this.key = key;
    this.backOff = backOff;
  }

  get deficit(): number {
    return this.target - this.members.size - this.boots.size;
  }

  /** While boots fail, only one runs at a time. */
  get mayBoot(): boolean {
    const { streak, retryInMs } = this.backOff;
    return this.deficit > 0 && retryInMs === undefined && (streak === 0 || this.boots.size === 0);
  }

  /** Instances beyond the target that no claim waits for. */
  get surplus(): number {
    let free = 0;
    for (const { isClaimed } of this.members) if (!isClaimed) free++;
    return free + this.boots.size - this.#claims.size - this.target;
  }

  get isAbandoned(): boolean {
    return this.target === 0 && this.members.size === 0 && this.boots.size === 0;
  }

  get stats(): WarmPoolStats<Key> {
    const { key, target, hits, misses, failures } = this;
    return {
      key,
      target,
      ready: this.members.size,
      booting: this.boots.size,
      hits,
      misses,
      failures,
      meanWaitMs: hits === 0 ? null : this.totalWaitMs / hits,
      retryInMs: this.backOff.retryInMs ?? null,
    };
  }

  /** The newest boot that no claim needs. */
  freeBoot(): Boot | undefined {
    return this.boots.size > this.#claims.size ? [...this.boots].at(-1) : undefined;
  }

  /** Waits for the next successful boot, if there is one without a claim. */
  waitForBoot(signal: AbortSignal | undefined): Promise<Shelved<Key, Member> | undefined> {
    if (this.boots.size <= this.#claims.size) return Promise.resolve(undefined);
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        this.#claims.delete(claim);
        reject(abortError(signal as AbortSignal, "waiting for a warm instance"));
      };
      const claim: Claim<Key, Member> = (found) => {
        this.#claims.delete(claim);
        signal?.removeEventListener("abort", onAbort);
        resolve(found);
      };
      if (signal?.aborted) return onAbort();
      signal?.addEventListener("abort", onAbort);
      this.#claims.add(claim);
    });
  }

  /** Gives it to the oldest claim; without claims it is free. */
  offer(found: Shelved<Key, Member>): void {
    const [first] = this.#claims;
    found.isClaimed = first !== undefined;
    first?.(found);
  }

  /** Rejects the newest claims when there are fewer boots than claims. */
  releaseClaims(): void {
    for (const claim of [...this.#claims].slice(this.boots.size)) claim(undefined);
  }
}
