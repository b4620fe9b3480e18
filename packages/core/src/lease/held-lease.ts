import { type Clock, SandboxError, type SandboxId } from "@sandpiper/protocol";
import { type FencedState, removeState } from "./fenced-state.ts";
import { insist } from "./insist.ts";
import type { JsonObject, Versioned } from "./json-object.ts";
import type { Lease } from "./lease.ts";
import { leaseLost } from "./lease-errors.ts";
import type { LeaseTiming } from "./lease-timing.ts";
import { type Lock, type LockWaiter, liveWaiter, releasedLock } from "./lock.ts";
import { currentMoment, isPast, later, type Moment } from "./moment.ts";

export interface HeldLeaseOptions {
  readonly id: SandboxId;
  readonly lock: JsonObject<Lock>;
  readonly state: JsonObject<FencedState>;
  readonly stored: Versioned<Lock>;
  /** Taken before the write that acquired the lease was sent. */
  readonly startedAt: Moment;
  readonly clock: Clock;
  readonly timing: LeaseTiming;
  readonly nudge: (url: string) => void;
  readonly onError: (error: unknown) => void;
  /** Called once, when the lease was released or lost. */
  readonly onEnded: () => void;
}

/** A lease that this node holds. Its writes are serialized, each based on the last known version. */
export class HeldLease implements Lease {
  readonly id: SandboxId;
  readonly epoch: number;
  readonly #options: HeldLeaseOptions;
  readonly #nonce: string;
  readonly #lost = new AbortController();
  readonly #over = new AbortController();
  #isLeaving = false;
  #stored: Versioned<Lock>;
  #deadline: Moment;
  #isAttached: boolean;
  #stateRevision: number;
  #writes: Promise<unknown> = Promise.resolve();
  #isLookDue = false;
  #seenWaiter: string | undefined;
  #onWaiter: ((waiter: LockWaiter) => void) | undefined;
  #onRenewed: ((deadlineMs: number) => void) | undefined;
  #cancelRenewal: () => void;
  #cancelDeadline: () => void;

  constructor(options: HeldLeaseOptions) {
    const { id, stored, startedAt, clock, timing } = options;
    this.#options = options;
    this.id = id;
    this.epoch = stored.value.epoch;
    this.#nonce = stored.value.nonce;
    this.#stored = stored;
    this.#isAttached = stored.value.attached;
    this.#stateRevision = stored.value.stateRevision;
    this.#deadline = later(startedAt, timing.durationMs - timing.marginMs);
    const renewAtMs = startedAt.monotonicMs + timing.renewEveryMs;
    this.#cancelRenewal = clock.schedule(renewAtMs - clock.monotonicMs(), () => this.#renew());
    this.#cancelDeadline = clock.schedule(this.#deadline.monotonicMs - clock.monotonicMs(), () => this.#watch());
  }

  get deadlineMs(): number {
    return this.#deadline.monotonicMs;
  }

  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  get isHeld(): boolean {
    return !this.#isLeaving && this.#isInTime();
  }

  get stateRevision(): number {
    return this.#stateRevision;
  }

  noteState(revision: number): void {
    this.#stateRevision = Math.max(this.#stateRevision, revision);
  }

  renewNow(): Promise<void> {
    return this.#enqueue(() => this.#write());
  }

  setAttached(isAttached: boolean): Promise<void> {
    return this.#enqueue(() => {
      this.#isAttached = isAttached;
      return this.#write();
    });
  }

  onWaiter(callback: (waiter: LockWaiter) => void): void {
    this.#onWaiter = callback;
    queueMicrotask(() => this.#noticeWaiter());
  }

  onRenewed(callback: (deadlineMs: number) => void): void {
    this.#onRenewed = callback;
    queueMicrotask(() => callback(this.deadlineMs));
  }

  async release(): Promise<void> {
    if (this.isHeld) await this.#leave(() => this.#writeReleased());
    else await this.#writes;
  }

  async remove(): Promise<void> {
    this.#assertHeld();
    await this.#leave(() => this.#writeRemoved());
  }

  /** Called when another node reports a change of the lock. */
  poke(): void {
    if (this.#isLookDue || !this.isHeld) return;
    this.#isLookDue = true;
    this.#enqueue(async () => {
      this.#isLookDue = false;
      await this.#look();
    }).catch(() => undefined);
  }

  abandon(): void {
    if (this.#over.signal.aborted) return;
    this.#over.abort();
    this.#cancelRenewal();
    this.#cancelDeadline();
    this.#options.onEnded();
  }

  #isInTime(): boolean {
    return !this.#over.signal.aborted && !isPast(this.#deadline, this.#options.clock);
  }

  async #leave(work: () => Promise<void>): Promise<void> {
    this.#isLeaving = true;
    try {
      await this.#enqueue(work);
    } finally {
      this.abandon();
    }
  }

  #enqueue(work: () => Promise<void>): Promise<void> {
    const { clock, timing, onError } = this.#options;
    const isLeaving = this.#isLeaving;
    const options = {
      clock,
      retryMs: timing.retryMs,
      signal: this.#over.signal,
      isInTime: () => this.#isInTime() && this.#isLeaving === isLeaving,
      onError,
      tooLate: (cause: unknown) => this.#lose(cause),
    };
    const result = this.#writes.then(() => insist(options, work));
    this.#writes = result.catch(() => undefined);
    return result;
  }

  /** Failures end in `lost`, because there is no caller. */
  #renew(): void {
    this.renewNow().catch(() => undefined);
  }

  async #write(): Promise<void> {
    const { clock, timing, lock } = this.#options;
    for (;;) {
      this.#assertHeld();
      const startedAt = currentMoment(clock);
      const written = await lock.swap(this.#stored, {
        ...this.#stored.value,
        timestamp: Math.floor(startedAt.wallMs / 1000),
        expiresAt: new Date(startedAt.wallMs + timing.durationMs).toISOString(),
        attached: this.#isAttached,
        revision: this.#stored.value.revision + 1,
        stateRevision: this.#stateRevision,
      });
      if (written !== undefined) {
        this.#stored = written;
        this.#extend(startedAt);
        return;
      }
      await this.#look();
    }
  }

  async #writeReleased(): Promise<void> {
    const { clock, timing, lock, nudge } = this.#options;
    for (;;) {
      const nowMs = clock.now().getTime();
      const last = { ...this.#stored.value, stateRevision: this.#stateRevision };
      const written = await lock.swap(this.#stored, releasedLock(last, nowMs));
      const waiter = liveWaiter(this.#stored.value, nowMs, timing.maxSkewMs);
      if (written !== undefined || !(await this.#isStillOurs())) {
        if (typeof waiter?.url === "string") nudge(waiter.url);
        return;
      }
    }
  }

  /** Deletes the state first: a lock without a state is an empty sandbox, but a state without its lock has no epoch. */
  async #writeRemoved(): Promise<void> {
    const { lock, state } = this.#options;
    if (!this.#isInTime()) throw this.#lose();
    await removeState(state, this.id, this.epoch);
    while (!(await lock.delete(this.#stored))) {
      if (await this.#isStillOurs()) continue;
      if ((await lock.read()) === undefined) return;
      throw this.#lose();
    }
  }

  /** A lease whose deadline passed before the answer stays lost, because its users have already reacted. */
  #extend(startedAt: Moment): void {
    const { clock, timing } = this.#options;
    if (this.#isLeaving) return;
    this.#assertHeld();
    this.#deadline = later(startedAt, timing.durationMs - timing.marginMs);
    this.#cancelRenewal();
    const renewAtMs = startedAt.monotonicMs + timing.renewEveryMs;
    this.#cancelRenewal = clock.schedule(renewAtMs - clock.monotonicMs(), () => this.#renew());
    this.#onRenewed?.(this.deadlineMs);
  }

  /** Renewals move the deadline but not the timer, which checks it again when it fires. */
  #watch(): void {
    const { clock } = this.#options;
    if (!this.#isInTime()) this.#lose();
    else this.#cancelDeadline = clock.schedule(this.deadlineMs - clock.monotonicMs(), () => this.#watch());
  }

  async #look(): Promise<void> {
    if (!(await this.#isStillOurs())) throw this.#lose();
    this.#noticeWaiter();
  }

  /** Reads the lock again; only the owner changes the owner's part of it. */
  async #isStillOurs(): Promise<boolean> {
    const stored = await this.#options.lock.read().catch((thrown) => this.#inPlaceOf(thrown));
    if (stored === undefined || stored.value.nonce !== this.#nonce || stored.value.owner === null) return false;
    this.#stored = stored;
    return true;
  }

  /** A live owner replaces a version that no node wrote, or an old one, with its own. */
  #inPlaceOf(thrown: unknown): Versioned<Lock> {
    const tag = thrown instanceof SandboxError ? thrown.details["tag"] : undefined;
    if (typeof tag !== "string" || !this.#isInTime()) throw thrown;
    this.#options.onError(thrown);
    return { value: this.#stored.value, tag };
  }

  #noticeWaiter(): void {
    const { clock, timing } = this.#options;
    const waiter = liveWaiter(this.#stored.value, clock.now().getTime(), timing.maxSkewMs);
    if (waiter === null || waiter.nonce === this.#seenWaiter || this.#onWaiter === undefined || !this.isHeld) return;
    this.#seenWaiter = waiter.nonce;
    this.#onWaiter({ node: waiter.node, url: waiter.url, takeover: waiter.takeover });
  }

  #assertHeld(): void {
    if (!this.isHeld) throw this.#lose();
  }

  /** Returns the error for callers. A lease that is being released ends when that is done. */
  #lose(cause?: unknown): Error {
    const error = leaseLost(this.id, this.epoch, cause);
    if (this.#isLeaving || this.#over.signal.aborted) return error;
    this.#lost.abort(error);
    this.abandon();
    return error;
  }
}
