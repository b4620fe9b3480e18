import {
  type Clock,
  KeyedMutex,
  Lifetime,
  type ProcessExit,
  type ProcessHandle,
  type Sandbox,
  SandboxError,
} from "@sandpiper/core";
import type { EventKind, SandboxId } from "@sandpiper/protocol";
import type { MomentaryUsage } from "../auth/momentary-usage.ts";
import type { EventLog, NewEvent } from "../records/event-log.ts";
import type { DurableUsage, SandboxChange, SandboxFilter, SandboxRecord } from "../records/sandbox-record.ts";
import type { SqliteSandboxRecords } from "../records/sqlite-sandbox-records.ts";
import { type ActivityWatch, LiveSandbox } from "./live-sandbox.ts";

export interface SandboxRegistryOptions {
  readonly records: SqliteSandboxRecords;
  readonly events: EventLog;
  readonly momentary: Pick<MomentaryUsage, "take" | "hold">;
  readonly clock: Clock;
  /** Puts what commands need into a sandbox that starts here, or whose record has changed. Undefined if nothing is needed. */
  readonly prepare?: ((sandbox: Sandbox, record: SandboxRecord) => Promise<void> | undefined) | undefined;
  readonly observeExec?: ((provider: string, seconds: number) => void) | undefined;
  /** Receives failures that no caller waits for. */
  readonly onError: (error: SandboxError, id: SandboxId) => void;
}

/** Wraps the activity watch of each sandbox that starts on this node. */
export type ActivityObserver = (id: SandboxId, next: ActivityWatch) => ActivityWatch & Disposable;
/** Called when a sandbox starts on this node; the result is disposed when it no longer runs here. */
export type AttachObserver = (sandbox: Sandbox, record: SandboxRecord) => Disposable;
type ExpiryListener = (record: SandboxRecord, reason: "ttl" | "idle") => void;

const RETRY_RECORDING_MS = 1000;

interface Entry {
  /** A copy of the stored record, because every use of the sandbox needs it. */
  record: SandboxRecord;
  readonly sandbox: Sandbox;
  readonly live: LiveSandbox;
  readonly lifetime: Lifetime;
  readonly observers: DisposableStack;
}

/** The single owner of each sandbox's record, running instance, state, and the mutex that serializes its changes. */
export class SandboxRegistry {
  readonly #options: SandboxRegistryOptions;
  readonly #entries = new Map<SandboxId, Entry>();
  readonly #mutex = new KeyedMutex<SandboxId>();
  readonly #destructions = new Map<SandboxId, Promise<void>>();
  readonly #activityObservers: ActivityObserver[] = [];
  readonly #attachObservers: AttachObserver[] = [];
  readonly #expiryListeners: ExpiryListener[] = [];
  readonly #failureListeners: ((id: SandboxId) => void)[] = [];
  readonly #endListeners: ((record: SandboxRecord) => void)[] = [];
  #isReleased = false;

  constructor(options: SandboxRegistryOptions) {
    this.#options = options;
  }

  /** Applies to sandboxes that are attached from now on. */
  observeActivity(observer: ActivityObserver): void {
    this.#activityObservers.push(observer);
  }

  /** Applies to sandboxes that are attached from now on. */
  observeAttached(observer: AttachObserver): void {
    this.#attachObservers.push(observer);
  }

  /** Called once the end of a sandbox whose instance ended by itself is recorded. */
  onFailed(listener: (id: SandboxId) => void): void {
    this.#failureListeners.push(listener);
  }

  /** Called when a sandbox has failed, or a failed one was recovered: its use of quotas differs. */
  onEndChanged(listener: (record: SandboxRecord) => void): void {
    this.#endListeners.push(listener);
  }

  onExpired(listener: ExpiryListener): void {
    this.#expiryListeners.push(listener);
  }

  /** Runs `work` when no other change to this sandbox is running, in the order of the calls. */
  serialize<T>(id: SandboxId, work: () => Promise<T>): Promise<T> {
    return this.#mutex.run(id, work);
  }

  /** Resolves when no change to this sandbox is running; never rejects. */
  unlocked(id: SandboxId): Promise<void> {
    return this.#mutex.free(id);
  }

  /** Runs a destruction under the mutex. Concurrent calls share one; until it ends, callers cannot use the sandbox. */
  destroyOnce(id: SandboxId, destroy: () => Promise<void>): Promise<void> {
    const running = this.#destructions.get(id);
    if (running !== undefined) return running;
    const destruction = this.serialize(id, destroy).finally(() => this.#destructions.delete(id));
    this.#destructions.set(id, destruction);
    return destruction;
  }

  isBeingDestroyed(id: SandboxId): boolean {
    return this.#destructions.has(id);
  }

  /** Resolves when no destruction is running. */
  async destructionsSettled(): Promise<void> {
    while (this.#destructions.size > 0) await Promise.allSettled(this.#destructions.values());
  }

  /** With a tenant, only if the sandbox is that tenant's. */
  record(id: SandboxId, options?: { readonly tenant?: string | undefined }): SandboxRecord | undefined {
    return this.#options.records.get(id, options);
  }

  /** Records of sandboxes that are neither destroyed nor failed. */
  current(): readonly SandboxRecord[] {
    return this.#options.records.live();
  }

  list(filter: SandboxFilter): ReturnType<SqliteSandboxRecords["list"]> {
    return this.#options.records.list(filter);
  }

  /** The sandbox of a tenant with this name that has not ended. */
  named(tenant: string, name: string): SandboxId | undefined {
    return this.#options.records.named(tenant, name);
  }

  /** What the sandboxes of a key or a tenant use of its quota. */
  usage(payer: { readonly keyId: string } | { readonly tenant: string }): DurableUsage {
    return this.#options.records.usage(payer);
  }

  prune(endedBefore: Date): number {
    return this.#options.records.prune(endedBefore);
  }

  /** Without the records of destroyed sandboxes. */
  recordBytes(tenant: string): number {
    return this.#options.records.bytesOf(tenant);
  }

  /** Deletes the oldest records of a tenant's destroyed sandboxes until the newer ones fit. */
  trimDestroyed(tenant: string, maxBytes: number): void {
    this.#options.records.trimDestroyed(tenant, maxBytes);
  }

  add(record: SandboxRecord): void {
    this.#options.records.add(record);
  }

  change(id: SandboxId, change: SandboxChange): SandboxRecord {
    const record = this.#options.records.change(id, change);
    const entry = this.#entries.get(id);
    if (entry !== undefined) {
      entry.record = record;
      entry.lifetime.update(record);
    }
    if (change.endedAt !== undefined) this.#endChanged(record);
    return record;
  }

  /** Records that the sandbox has failed, and emits the event. */
  fail({ id }: Pick<SandboxRecord, "id">, { code, reason, message }: Failure): void {
    const failure = { code, reason, message };
    const endedAt = this.#options.clock.now();
    this.emit("sandbox.failed", this.change(id, { state: "failed", failure, endedAt }), failure);
  }

  /** Records that the sandbox never became ready, and emits the event. A small record stays. */
  failCreation({ id }: Pick<SandboxRecord, "id">, { code, reason, message }: Failure): void {
    if (this.#isReleased) return;
    const { clock, records, onError } = this.#options;
    const failure = { code, reason, message };
    try {
      const record = records.failCreation(id, { state: "failed", failure, endedAt: clock.now() });
      this.#endChanged(record);
      this.emit("sandbox.failed", record, failure);
    } catch (thrown) {
      const problem = SandboxError.from(thrown);
      onError(problem, id);
      // A full disk is often the cause of the failure; the record must not stay as it is for good.
      if (problem.code !== "not_found") clock.schedule(RETRY_RECORDING_MS, () => this.failCreation({ id }, failure));
    }
  }

  hasFailedCreation(id: SandboxId): boolean {
    return this.#options.records.hasFailedCreation(id);
  }

  failedCreations(tenant: string, options: { readonly except: number }): readonly SandboxId[] {
    return this.#options.records.failedCreations(tenant, options);
  }

  /** Deletes the record: the sandbox belongs to another node now. */
  drop(id: SandboxId): void {
    this.#options.records.remove(id);
  }

  emit(kind: EventKind, { id, tenant }: SandboxRecord, details: NewEvent["details"] = {}): void {
    this.#options.events.emit({ kind, tenant, sandboxId: id, details });
  }

  get runningCount(): number {
    return this.#entries.size;
  }

  /** Also undefined while the sandbox is saved in order to stop; callers then wait for the mutex. */
  running(id: SandboxId): LiveSandbox | undefined {
    const entry = this.#entries.get(id);
    return entry?.sandbox.state === "ready" ? entry.live : undefined;
  }

  /** Throws unless the sandbox runs here. */
  instance(id: SandboxId): Pick<Entry, "sandbox" | "record" | "live"> {
    const entry = this.#entries.get(id);
    if (entry !== undefined) return entry;
    throw new SandboxError("not_ready", {
      message: `cannot save sandbox ${id}: it is not running`,
      hint: "resume or start it first",
    });
  }

  /** Makes a running sandbox usable and starts its lifetime. Its record must be stored already. */
  attach(sandbox: Sandbox, record: SandboxRecord): LiveSandbox {
    const { clock } = this.#options;
    const current = () => entry.record;
    const lifetime = new Lifetime({
      clock,
      expiresAt: record.expiresAt,
      idleTimeoutMs: record.idleTimeoutMs,
      idleExcept: record.idleExcept,
      onExpiry: (reason) => {
        for (const listener of this.#expiryListeners) listener(current(), reason);
      },
    });
    const observers = new DisposableStack();
    let activity: ActivityWatch = lifetime;
    for (const observe of this.#activityObservers) activity = observers.use(observe(record.id, activity));
    for (const observe of this.#attachObservers) observers.use(observe(sandbox, record));
    const live = new LiveSandbox({
      sandbox,
      record: current,
      activity,
      prepare: () => this.#options.prepare?.(sandbox, current()),
      take: (measure) => this.#options.momentary.take(current(), measure),
      processStarted: (process, counted) => this.#follow(live, process, counted),
    });
    const entry: Entry = { record, sandbox, live, lifetime, observers };
    this.#entries.set(record.id, entry);
    // Commands wait for it.
    live.prepare().catch((thrown) => this.#options.onError(SandboxError.from(thrown), record.id));
    if (sandbox.startedService !== undefined) this.#follow(live, sandbox.startedService, this.#countProcess(live));
    sandbox.closed.then(({ reason }) => {
      if (reason === "crashed" || reason === "out_of_memory") this.#ended(sandbox);
    });
    return live;
  }

  /** Like `attach`, for a sandbox with running processes, which keep it from being idle. */
  async attachWithProcesses(sandbox: Sandbox, record: SandboxRecord): Promise<LiveSandbox> {
    const live = this.attach(sandbox, record);
    for (const { id, isRunning } of live.greetedProcesses) {
      if (isRunning) this.#holdWhileRunning(live, await live.attach(id, 0), this.#countProcess(live));
    }
    return live;
  }

  /** Makes the sandbox unreachable for callers. Its instance still has to be destroyed. */
  detach(id: SandboxId): void {
    const entry = this.#entries.get(id);
    entry?.lifetime.dispose();
    entry?.observers.dispose();
    this.#entries.delete(id);
  }

  /** Stops all timers. The sandboxes keep running. */
  release(): void {
    this.#isReleased = true;
    for (const id of [...this.#entries.keys()]) this.detach(id);
  }

  #endChanged(record: SandboxRecord): void {
    if (record.state !== "destroyed") for (const listener of this.#endListeners) listener(record);
  }

  #ended(sandbox: Sandbox): void {
    if (this.#entries.get(sandbox.id)?.sandbox !== sandbox) return;
    this.detach(sandbox.id);
    this.#recordEnd(sandbox);
  }

  /** Retries: a full disk, often the cause of the end, must not stop the node. */
  #recordEnd(sandbox: Sandbox): void {
    if (this.#isReleased) return;
    const { clock, onError } = this.#options;
    const error = sandbox.failure ?? new SandboxError("instance_crashed", { message: "the instance ended" });
    try {
      this.fail(sandbox, error);
      for (const listener of this.#failureListeners) listener(sandbox.id);
    } catch (thrown) {
      const problem = SandboxError.from(thrown);
      onError(problem, sandbox.id);
      // Without a record there is nothing left to write.
      if (problem.code !== "not_found") clock.schedule(RETRY_RECORDING_MS, () => this.#recordEnd(sandbox));
    }
  }

  /** Counts a process that no caller starts now. */
  #countProcess({ record }: LiveSandbox): Disposable {
    return this.#options.momentary.hold(record, "processes");
  }

  /** Disposes `counted` when the process has ended. */
  #follow(live: LiveSandbox, process: ProcessHandle, counted: Disposable): void {
    const { observeExec, onError } = this.#options;
    const { record } = live;
    const about = { process: process.id, pid: process.pid };
    // After the response to the caller: writing an event takes as long as a short command.
    const emitLater = (kind: "process.started" | "process.exited", details: NewEvent["details"]) =>
      setImmediate(() => {
        if (this.#isReleased) return;
        try {
          this.emit(kind, record, details);
        } catch (thrown) {
          // A full disk must not stop the node.
          onError(SandboxError.from(thrown), record.id);
        }
      });
    emitLater("process.started", about);
    this.#holdWhileRunning(live, process, counted, ({ exitCode, signal, durationMs }) => {
      observeExec?.(record.provider, durationMs / 1000);
      emitLater("process.exited", { ...about, exitCode, signal });
    });
  }

  #holdWhileRunning(
    live: LiveSandbox,
    process: ProcessHandle,
    counted: Disposable,
    exited?: (exit: ProcessExit) => void,
  ): void {
    const held = live.hold("process");
    process
      .wait()
      .then(exited, () => {})
      .finally(() => {
        held[Symbol.dispose]();
        counted[Symbol.dispose]();
      });
  }
}

type Failure = Pick<SandboxError, "code" | "reason" | "message">;
