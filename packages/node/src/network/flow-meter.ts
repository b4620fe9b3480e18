import type { Clock } from "@sandpiper/core";
import type { NetworkLimits } from "@sandpiper/protocol";
import { TokenBucket } from "./token-bucket.ts";

/** Counts the bytes of all flows of a sandbox. */
export class FlowMeter {
  readonly #bandwidth: TokenBucket;
  readonly #onExhausted: () => void;
  #maxBytes: number | null;
  #totalBytes = 0;

  /** `onExhausted` is called when the sandbox has used all of its bytes. */
  constructor(limits: NetworkLimits, { clock, onExhausted }: { clock: Clock; onExhausted: () => void }) {
    this.#bandwidth = new TokenBucket(limits.maxBytesPerSecond, clock);
    this.#maxBytes = limits.maxBytes;
    this.#onExhausted = onExhausted;
  }

  get isExhausted(): boolean {
    return this.#maxBytes !== null && this.#totalBytes >= this.#maxBytes;
  }

  setLimits({ maxBytes, maxBytesPerSecond }: NetworkLimits): void {
    this.#maxBytes = maxBytes;
    this.#bandwidth.setLimit(maxBytesPerSecond);
    if (this.isExhausted) this.#onExhausted();
  }

  /** Returns for how many milliseconds the direction must then carry nothing. */
  count(bytes: number): number {
    this.#totalBytes += bytes;
    if (this.isExhausted) this.#onExhausted();
    return this.#bandwidth.isLimited ? this.#bandwidth.spend(bytes) : 0;
  }
}
