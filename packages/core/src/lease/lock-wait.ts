import { abortError, type Clock, pause, type SandboxError, type SandboxId } from "@sandpiper/protocol";
import type { JsonObject, Versioned } from "./json-object.ts";
import { handoffTimeout, handoffUnderWay, sandboxDestroyed, sandboxInUse } from "./lease-errors.ts";
import type { LeaseTiming } from "./lease-timing.ts";
import { isLive, type Lock, liveWaiter, releasedLock } from "./lock.ts";
import type { BidResult, LockBid } from "./lock-bid.ts";

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1000;
/** After this many failures the registration is left to expire, so that a canceled caller does not wait. */
const WITHDRAWALS = 3;

export interface LockWaitOptions {
  readonly id: SandboxId;
  readonly lock: JsonObject<Lock>;
  readonly bid: LockBid;
  readonly node: { readonly id: string; readonly url: string | null };
  /** Identifies this wait and its bid. */
  readonly nonce: string;
  readonly takeover: boolean;
  readonly patienceMs: number;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly timing: LeaseTiming;
  /** Serializes access to the lock within this program. */
  readonly exclusively: <T>(work: () => Promise<T>) => Promise<T>;
  readonly nudge: (url: string) => void;
  readonly onRegistered?: (() => void) | undefined;
  readonly onError: (error: unknown) => void;
}

type Taken = Extract<BidResult, { kind: "taken" }>;
type Step =
  | Taken
  | { readonly kind: "again" }
  | { readonly kind: "refused"; readonly error: SandboxError }
  | { readonly kind: "waiting"; readonly lock: Lock };

/** Waits for a lock that another node holds. Its registration in the lock informs the owner and blocks others. */
export class LockWait {
  readonly #options: LockWaitOptions;
  #renewAtMs: number | undefined;
  #hasNudged = false;
  #pauseMs = FIRST_PAUSE_MS;
  #alarm = new AbortController();

  constructor(options: LockWaitOptions) {
    this.#options = options;
    options.signal.addEventListener("abort", () => this.wake(), { once: true });
  }

  /** Makes it read the lock now, or after its current step. */
  wake(): void {
    this.#pauseMs = FIRST_PAUSE_MS;
    this.#alarm.abort();
  }

  async run<T>(onTaken: (taken: Taken) => T): Promise<T> {
    try {
      return await this.#wait(onTaken);
    } catch (thrown) {
      await this.#withdraw();
      throw thrown;
    }
  }

  async #wait<T>(onTaken: (taken: Taken) => T): Promise<T> {
    const { id, clock, signal, patienceMs, exclusively, onError } = this.#options;
    const giveUpAtMs = clock.monotonicMs() + patienceMs;
    for (let failure: unknown; ; ) {
      if (signal.aborted) throw abortError(signal, `waiting for sandbox ${id}`);
      if (clock.monotonicMs() >= giveUpAtMs) throw handoffTimeout(id, patienceMs, failure);
      this.#alarm = new AbortController();
      let sleepMs = this.#nextPauseMs();
      // The lease is held before other work on this lock can run.
      const result = await exclusively(async () => {
        const step = await this.#step();
        return step.kind === "taken" ? { kind: "done" as const, value: onTaken(step) } : step;
      }).catch((thrown: unknown) => {
        failure = thrown;
        onError(thrown);
      });
      if (result?.kind === "done") return result.value;
      if (result?.kind === "refused") throw result.error;
      if (result?.kind === "again") continue;
      if (result?.kind === "waiting") sleepMs = Math.min(sleepMs, this.#untilNextEvent(result.lock));
      await pause(clock, Math.min(sleepMs, giveUpAtMs - clock.monotonicMs()), this.#alarm.signal);
    }
  }

  async #step(): Promise<Step> {
    const { id, bid, clock, timing, takeover, nonce } = this.#options;
    const result = await bid.make();
    if (result.kind === "gone") return { kind: "refused", error: sandboxDestroyed(id) };
    if (result.kind !== "held") return result;
    const lock = result.stored.value;
    const nowMs = clock.now().getTime();
    const isOwned = lock.owner !== null && isLive(lock, nowMs, timing.maxSkewMs);
    if (isOwned && lock.attached && !takeover) return { kind: "refused", error: sandboxInUse(id) };
    const waiter = liveWaiter(lock, nowMs, timing.maxSkewMs);
    if (waiter !== null && waiter.nonce !== nonce) {
      return { kind: "refused", error: handoffUnderWay(id, waiter.node) };
    }
    return (await this.#register(result.stored)) ? { kind: "waiting", lock } : { kind: "again" };
  }

  /** False if the lock has changed meanwhile. */
  async #register(stored: Versioned<Lock>): Promise<boolean> {
    const { lock, node, nonce, takeover, clock, timing, nudge, onRegistered } = this.#options;
    const isRegistered = stored.value.waiter?.nonce === nonce;
    const startedAtMs = clock.monotonicMs();
    if (!isRegistered || this.#renewAtMs === undefined || startedAtMs >= this.#renewAtMs) {
      this.#renewAtMs = startedAtMs + timing.renewWaiterEveryMs;
      const expiresAt = new Date(clock.now().getTime() + timing.waiterMs).toISOString();
      const waiter = { node: node.id, url: node.url, expiresAt, takeover, nonce };
      const next = { ...stored.value, waiter, revision: stored.value.revision + 1 };
      if ((await lock.swap(stored, next)) === undefined) return false;
    }
    if (!this.#hasNudged) {
      if (stored.value.url !== null) nudge(stored.value.url);
      onRegistered?.();
    }
    this.#hasNudged = true;
    return true;
  }

  async #withdraw(): Promise<void> {
    if (this.#renewAtMs === undefined) return;
    const { exclusively, clock, timing, onError } = this.#options;
    for (let tries = 0; tries < WITHDRAWALS; tries++) {
      try {
        return await exclusively(() => this.#writeWithdrawn());
      } catch (thrown) {
        onError(thrown);
        await pause(clock, timing.retryMs, new AbortController().signal);
      }
    }
  }

  /** Also releases a lease that it got without receiving the answer. */
  async #writeWithdrawn(): Promise<void> {
    const { lock, bid, nonce, clock } = this.#options;
    for (let stored = await lock.read(); stored !== undefined; stored = await lock.read()) {
      const { value } = stored;
      const isOurs = bid.owns(value);
      if (!isOurs && value.waiter?.nonce !== nonce) return;
      const next = isOurs
        ? releasedLock(value, clock.now().getTime())
        : { ...value, waiter: null, revision: value.revision + 1 };
      if ((await lock.swap(stored, next)) !== undefined) return;
    }
  }

  #nextPauseMs(): number {
    const pauseMs = this.#pauseMs;
    this.#pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2);
    return pauseMs;
  }

  /** The next time at which the owner's lease expires or the registration must be renewed. */
  #untilNextEvent({ expiresAt }: Lock): number {
    const { clock, timing } = this.#options;
    const untilExpiryMs = Date.parse(expiresAt) + timing.maxSkewMs + 1 - clock.now().getTime();
    const untilRenewalMs = (this.#renewAtMs ?? 0) - clock.monotonicMs();
    return Math.max(1, Math.min(untilExpiryMs, untilRenewalMs));
  }
}
