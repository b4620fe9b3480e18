import { abortError, type Clock, SandboxError } from "@sandpiper/protocol";
import { Appointment } from "./appointment.ts";
import { BackOff, type BackOffOptions } from "./back-off.ts";
import { BootSlots } from "./boot-slots.ts";
import { checkHealth } from "./check-health.ts";
import { type Boot, PoolShelf, type Shelved, type WarmPoolStats } from "./pool-shelf.ts";

const DEFAULT_HEALTH_TIMEOUT_MS = 2000;
/** Concurrent health checks of a sweep. */
const SWEEP_WIDTH = 8;

export interface WarmPoolOptions<Key, Member> {
  /** Equal keys give equal strings; different keys give different ones. */
  readonly keyOf: (key: Key) => string;
  /** Must leave nothing behind when it rejects, and should stop on abort. */
  readonly boot: (key: Key, signal: AbortSignal) => Promise<Member>;
  readonly discard: (member: Member) => Promise<void>;
  readonly isHealthy: (member: Member) => Promise<boolean>;
  readonly clock: Clock;
  /** Concurrent boots of refills and callers together. */
  readonly maxBoots: number;
  /** An instance that has waited this long is replaced, never claimed. */
  readonly maxAgeMs: number;
  /** How often the health of waiting instances is checked. */
  readonly sweepIntervalMs: number;
  readonly backOff: BackOffOptions;
  /** An instance that does not answer in this time counts as dead. */
  readonly healthTimeoutMs?: number | undefined;
  /** Delays the replacement of a claimed instance, so that its first command has the CPU; 0 by default. */
  readonly refillDelayMs?: number | undefined;
  /** Receives failures that have no caller. */
  readonly onError?: ((error: SandboxError, key: Key) => void) | undefined;
}

/**
 * Keeps started instances for each key. A claim, a death or a new target triggers a refill; timers only end a back-off
 * and start the sweep. Every change happens between two awaits, so slow work holds no lock.
 */
export class WarmPool<Key, Member> implements AsyncDisposable {
  readonly #options: WarmPoolOptions<Key, Member>;
  readonly #slots: BootSlots;
  readonly #shelves = new Map<string, PoolShelf<Key, Member>>();
  readonly #members = new Map<Member, Shelved<Key, Member>>();
  /** Background work; never rejects. */
  readonly #pending = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  readonly #refillTurn: Appointment;
  #cancelSweep: (() => void) | undefined;
  #turn = 0;

  constructor(options: WarmPoolOptions<Key, Member>) {
    this.#options = options;
    this.#slots = new BootSlots(options.maxBoots, () => this.#refillIn(0));
    this.#refillTurn = new Appointment(options.clock, () => this.#refill());
  }

  /** 0 removes the pool of this key and its statistics. */
  setTarget(key: Key, target: number): void {
    if (!Number.isSafeInteger(target) || target < 0) throw invalidTarget(target);
    if (this.#closing.signal.aborted) throw poolClosed();
    const text = this.#options.keyOf(key);
    let shelf = this.#shelves.get(text);
    if (shelf === undefined) {
      if (target === 0) return;
      shelf = new PoolShelf(key, new BackOff(this.#options.clock, this.#options.backOff));
      this.#shelves.set(text, shelf);
    }
    shelf.target = target;
    this.#trim(shelf);
    this.#refillIn(0);
  }

  /** Resolves with a healthy instance, which now belongs to the caller; undefined means: boot one in `withBootSlot`. */
  async claim(key: Key, signal?: AbortSignal): Promise<Member | undefined> {
    if (signal?.aborted) throw abortError(signal, "claiming a warm instance");
    const shelf = this.#shelves.get(this.#options.keyOf(key));
    if (shelf === undefined) return undefined;
    const startedAtMs = this.#options.clock.monotonicMs();
    let found: Shelved<Key, Member> | undefined;
    try {
      do {
        found = this.#oldestFree(shelf) ?? (await shelf.waitForBoot(signal));
      } while (found !== undefined && !(await this.#take(found, signal)));
    } catch (thrown) {
      if (found !== undefined && this.#isMine(found)) shelf.offer(found);
      this.#trim(shelf);
      throw thrown;
    }
    if (found === undefined) {
      shelf.misses++;
      return undefined;
    }
    shelf.hits++;
    shelf.totalWaitMs += this.#options.clock.monotonicMs() - startedAtMs;
    this.#trim(shelf);
    this.#refillIn(this.#options.refillDelayMs ?? 0);
    return found.member;
  }

  /** Discards and replaces an instance that died or must not be used. False if it does not belong to the pool. */
  remove(member: Member): boolean {
    const found = this.#members.get(member);
    if (found === undefined) return false;
    this.#evictDead(found);
    return true;
  }

  /** Runs a caller's own boot within the same limit, before refills. */
  withBootSlot<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    return this.#slots.run(work, signal);
  }

  stats(): readonly WarmPoolStats<Key>[] {
    return [...this.#shelves.values()].map((shelf) => shelf.stats);
  }

  /** Undefined without a target. */
  statsOf(key: Key): WarmPoolStats<Key> | undefined {
    return this.#shelves.get(this.#options.keyOf(key))?.stats;
  }

  /** Cancels boots, discards waiting instances, and resolves when all are gone. */
  async close(): Promise<void> {
    if (!this.#closing.signal.aborted) {
      this.#closing.abort(poolClosed());
      this.#refillTurn.cancel();
      this.#cancelSweep?.();
      this.#slots.close(poolClosed());
      for (const shelf of this.#shelves.values()) this.#clear(shelf);
      this.#shelves.clear();
    }
    while (this.#pending.size > 0) await Promise.all(this.#pending);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #oldestFree(shelf: PoolShelf<Key, Member>): Shelved<Key, Member> | undefined {
    for (const found of shelf.members) {
      if (found.isClaimed) continue;
      if (!this.#isOld(found)) return found;
      this.#evict(found);
    }
    return undefined;
  }

  /** False if the instance is unhealthy or was removed during the check. */
  async #take(found: Shelved<Key, Member>, signal: AbortSignal | undefined): Promise<boolean> {
    found.isClaimed = true;
    const isHealthy = await this.#isHealthy(found, signal);
    if (!this.#isMine(found)) return false;
    if (isHealthy) this.#forget(found);
    else this.#evictDead(found);
    return isHealthy;
  }

  #isMine(found: Shelved<Key, Member>): boolean {
    return this.#members.get(found.member) === found;
  }

  #isOld({ readyAtMs }: Shelved<Key, Member>): boolean {
    return this.#options.clock.monotonicMs() - readyAtMs >= this.#options.maxAgeMs;
  }

  #isHealthy({ member }: Shelved<Key, Member>, signal: AbortSignal | undefined): Promise<boolean> {
    const { clock, isHealthy, healthTimeoutMs: timeoutMs = DEFAULT_HEALTH_TIMEOUT_MS } = this.#options;
    return checkHealth(() => isHealthy(member), { clock, timeoutMs, signal });
  }

  /** A short-lived instance counts as a failed boot; otherwise one that always dies would boot forever without a pause. */
  #evictDead(found: Shelved<Key, Member>): void {
    const { shelf, readyAtMs, streak } = found;
    if (shelf.backOff.isTooSoon(this.#options.clock.monotonicMs() - readyAtMs)) {
      shelf.failures++;
      shelf.backOff.failed(streak);
    }
    this.#evict(found);
  }

  #evict(found: Shelved<Key, Member>): void {
    this.#forget(found);
    this.#discard(found.member, found.shelf.key);
    this.#refillIn(0);
  }

  #forget(found: Shelved<Key, Member>): void {
    found.shelf.members.delete(found);
    this.#members.delete(found.member);
  }

  /** Cancels boots before it discards instances, and discards the oldest first. */
  #trim(shelf: PoolShelf<Key, Member>): void {
    while (shelf.surplus > 0) {
      const boot = shelf.freeBoot();
      const found = boot === undefined ? this.#oldestFree(shelf) : undefined;
      if (boot !== undefined) this.#cancel(shelf, boot);
      else if (found !== undefined) this.#evict(found);
    }
    const text = this.#options.keyOf(shelf.key);
    if (shelf.isAbandoned && this.#shelves.get(text) === shelf) this.#shelves.delete(text);
  }

  #clear(shelf: PoolShelf<Key, Member>): void {
    shelf.target = 0;
    for (const boot of shelf.boots) this.#cancel(shelf, boot);
    shelf.releaseClaims();
    for (const found of shelf.members) this.#evict(found);
  }

  #cancel(shelf: PoolShelf<Key, Member>, boot: Boot): void {
    shelf.boots.delete(boot);
    boot.controller.abort(poolLowered());
  }

  /** Deferred, because a boot uses the CPU that the claiming caller needs first. */
  #refillIn(delayMs: number): void {
    if (!this.#closing.signal.aborted) this.#refillTurn.atLatestIn(delayMs);
  }

  #refill(): void {
    for (let shelf = this.#next(); shelf !== undefined && this.#slots.tryTake(); shelf = this.#next()) {
      const boot = { controller: new AbortController(), streak: shelf.backOff.streak };
      shelf.boots.add(boot);
      shelf.lastTurn = ++this.#turn;
      this.#track(this.#boot(shelf, boot));
    }
    for (const { deficit, backOff } of this.#shelves.values()) {
      if (deficit > 0 && backOff.retryInMs !== undefined) this.#refillIn(backOff.retryInMs);
    }
  }

  /** Keys take turns, so that a large target does not keep a small one waiting. */
  #next(): PoolShelf<Key, Member> | undefined {
    let next: PoolShelf<Key, Member> | undefined;
    for (const shelf of this.#shelves.values()) {
      if (shelf.mayBoot && (next === undefined || shelf.lastTurn < next.lastTurn)) next = shelf;
    }
    return next;
  }

  async #boot(shelf: PoolShelf<Key, Member>, boot: Boot): Promise<void> {
    try {
      const member = await this.#options.boot(shelf.key, boot.controller.signal);
      if (shelf.boots.delete(boot)) this.#shelve(shelf, member, boot.streak);
      else this.#discard(member, shelf.key);
    } catch (thrown) {
      const error = SandboxError.from(thrown);
      const wasWanted = shelf.boots.delete(boot);
      if (wasWanted) {
        shelf.failures++;
        shelf.backOff.failed(boot.streak);
        shelf.releaseClaims();
      }
      if (wasWanted || error.code !== "canceled") this.#report(error, shelf.key);
    } finally {
      this.#slots.give();
      this.#trim(shelf);
    }
  }

  #shelve(shelf: PoolShelf<Key, Member>, member: Member, streak: number): void {
    shelf.backOff.succeeded();
    const found = { member, shelf, readyAtMs: this.#options.clock.monotonicMs(), streak, isClaimed: false };
    shelf.members.add(found);
    this.#members.set(member, found);
    shelf.offer(found);
    this.#sweepLater();
  }

  #sweepLater(): void {
    if (this.#cancelSweep !== undefined || this.#members.size === 0 || this.#closing.signal.aborted) return;
    this.#cancelSweep = this.#options.clock.schedule(this.#options.sweepIntervalMs, () => this.#track(this.#sweep()));
  }

  async #sweep(): Promise<void> {
    const rest = [...this.#members.values()].values();
    const visit = async () => {
      for (const found of rest) await this.#inspect(found);
    };
    await Promise.all(Array.from({ length: SWEEP_WIDTH }, visit));
    this.#cancelSweep = undefined;
    this.#sweepLater();
  }

  /** The instance may be claimed during the check; the claim then checks it as well. */
  async #inspect(found: Shelved<Key, Member>): Promise<void> {
    const isFree = () => this.#isMine(found) && !found.isClaimed;
    if (!isFree()) return;
    if (this.#isOld(found)) return this.#evict(found);
    const isHealthy = await this.#isHealthy(found, this.#closing.signal).catch(() => true);
    if (!isHealthy && isFree()) this.#evictDead(found);
  }

  #discard(member: Member, key: Key): void {
    const discarded = Promise.try(this.#options.discard, member);
    this.#track(discarded.catch((thrown) => this.#report(SandboxError.from(thrown), key)));
  }

  #report(error: SandboxError, key: Key): void {
    try {
      this.#options.onError?.(error, key);
    } catch {
      // A failing listener must not break the pool.
    }
  }

  #track(work: Promise<void>): void {
    this.#pending.add(work);
    work.then(() => this.#pending.delete(work));
  }
}

function invalidTarget(target: number): SandboxError {
  return new SandboxError("invalid_target", {
    message: `invalid pool target ${target}: expected a whole number of instances, at least 0`,
    details: { target },
  });
}

function poolClosed(): SandboxError {
  return new SandboxError("pool_closed", { message: "no instance was started: the warm pool has been closed" });
}

function poolLowered(): SandboxError {
  return new SandboxError("pool_lowered", {
    message: "the boot was canceled: the warm pool no longer needs the instance",
  });
}
