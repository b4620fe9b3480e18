import { type Clock, SandboxError } from "@sandpiper/core";

/** Bounds the memory of limits per address, of which an attacker may have many. */
const MAX_CALLERS = 100_000;

export interface RateLimitOptions {
  /** The name in errors and metrics. */
  readonly name: "key" | "address" | "failed_creates";
  /** 0 for no limit. */
  readonly perSecond: number;
  /** How many requests an idle caller may send at once. */
  readonly burst: number;
  readonly clock: Clock;
  /** Called for each refusal. */
  readonly onRefusal?: ((name: string) => void) | undefined;
}

interface Bucket {
  tokens: number;
  atMs: number;
}

/** A token bucket for each caller. */
export class RateLimit {
  readonly #options: RateLimitOptions;
  /** In the order of their last use. A caller without a bucket has a full one. */
  readonly #buckets = new Map<string, Bucket>();

  constructor(options: RateLimitOptions) {
    this.#options = options;
  }

  /** Counts one request. Throws `resource_exhausted` if the caller has sent too many. */
  take(caller: string): void {
    this.check(caller);
    this.spend(caller);
  }

  /** As `take`, without counting. */
  check(caller: string): void {
    const { name, perSecond, onRefusal } = this.#options;
    const { tokens } = this.#bucket(caller);
    if (perSecond === 0 || tokens >= 1) return;
    onRefusal?.(name);
    throw rateLimited(name, Math.ceil(((1 - tokens) / perSecond) * 1000));
  }

  spend(caller: string): void {
    if (this.#options.perSecond === 0) return;
    const bucket = this.#bucket(caller);
    bucket.tokens -= 1;
    this.#buckets.delete(caller);
    this.#buckets.set(caller, bucket);
    if (this.#buckets.size > MAX_CALLERS) this.#buckets.delete(this.#buckets.keys().next().value as string);
  }

  /** The current state of a caller's bucket. */
  #bucket(caller: string): Bucket {
    const { perSecond, burst, clock } = this.#options;
    const nowMs = clock.monotonicMs();
    const { tokens, atMs } = this.#buckets.get(caller) ?? { tokens: burst, atMs: nowMs };
    return { tokens: Math.min(burst, tokens + ((nowMs - atMs) / 1000) * perSecond), atMs: nowMs };
  }
}

const meanings = {
  key: "this key sends too many requests",
  address: "this address sends too many requests without a valid credential",
  failed_creates: "too many sandboxes of this key failed to start",
};

function rateLimited(limit: RateLimitOptions["name"], retryAfterMs: number): SandboxError {
  return new SandboxError("rate_limited", {
    message: meanings[limit],
    hint: `retry in ${Math.ceil(retryAfterMs / 1000)} s`,
    details: { limit, retryAfterMs },
  });
}
