import {
  type Clock,
  Lifetime,
  type ProcessExit,
  type ProcessHandle,
  type Sandbox,
  SandboxError,
} from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { AutomaticCheckpoints } from "../checkpoints/automatic-checkpoints.ts";
import type { EventLog, NewEvent } from "../records/event-log.ts";
import type { SandboxRecord, SandboxRecords } from "../records/sandbox-record.ts";
import { LiveSandbox } from "./live-sandbox.ts";

export interface LiveSandboxesOptions {
  readonly records: SandboxRecords;
  readonly events: EventLog;
  readonly clock: Clock;
  readonly observeExec?: ((provider: string, seconds: number) => void) | undefined;
  /** Sees what each sandbox is used for. */
  readonly automatic?: AutomaticCheckpoints | undefined;
  /** Told about failures that no caller waits for. */
  readonly onError: (error: SandboxError, id: SandboxId) => void;
  /** Its time is over. */
  readonly expired: (record: SandboxRecord, reason: "ttl" | "idle") => void;
}

const NOTE_AGAIN_MS = 1000;

interface Entry {
  /** As it is in the records; kept because every use of the sandbox needs it. */
  record: SandboxRecord;
  readonly sandbox: Sandbox;
  readonly live: LiveSandbox;
  readonly lifetime: Lifetime;
  readonly watched: Disposable | undefined;
}

/** The sandboxes that run here and belong to somebody, each with its lifetime. */
export class LiveSandboxes {
  readonly #options: LiveSandboxesOptions;
  readonly #entries = new Map<SandboxId, Entry>();
  #isReleased = false;

  constructor(options: LiveSandboxesOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#entries.size;
  }

  /** One that is being saved in order to stop does not count any more: whoever wants it waits until that is done. */
  get(id: SandboxId): LiveSandbox | undefined {
    const entry = this.#entries.get(id);
    return entry?.sandbox.state === "ready" ? entry.live : undefined;
  }

  /** Throws unless it runs here. */
  require(id: SandboxId): Pick<Entry, "sandbox" | "record" | "live"> {
    const entry = this.#entries.get(id);
    if (entry !== undefined) return entry;
    throw new SandboxError("failed_precondition", {
      reason: "not_ready",
      message: `sandbox ${id} does not run, so it cannot be saved`,
      hint: "resume it first",
    });
  }

  /** `record` is in the records already. */
  add(sandbox: Sandbox, record: SandboxRecord): LiveSandbox {
    const { clock, expired } = this.#options;
    const current = () => entry.record;
    const lifetime = new Lifetime({
      clock,
      expiresAt: record.expiresAt,
      idleTimeoutMs: record.idleTimeoutMs,
      idleExcept: record.idleExcept,
      onExpiry: (reason) => expired(current(), reason),
    });
    const watched = this.#options.automatic?.watch(record.id, lifetime);
    const live = new LiveSandbox({
      sandbox,
      record: current,
      activity: watched ?? lifetime,
      processStarted: (process) => this.#follow(live, process),
    });
    const entry: Entry = { record, sandbox, live, lifetime, watched };
    this.#entries.set(record.id, entry);
    sandbox.closed.then(({ reason }) => {
      if (reason !== "destroyed" && reason !== "checkpointed") this.#ended(sandbox);
    });
    return live;
  }

  /** As after a restart: processes that run keep their sandbox from being idle. */
  async followProcesses(live: LiveSandbox): Promise<void> {
    for (const { id, isRunning } of live.greetedProcesses) {
      if (isRunning) this.#hold(live, await live.attach(id, 0));
    }
  }

  update(record: SandboxRecord): void {
    const { expiresAt, idleTimeoutMs, idleExcept } = record;
    const entry = this.#entries.get(record.id);
    if (entry === undefined) return;
    entry.record = record;
    entry.lifetime.update({ expiresAt, idleTimeoutMs, idleExcept });
  }

  /** Nobody can reach it any more; it still has to be destroyed. */
  remove(id: SandboxId): Sandbox | undefined {
    const entry = this.#entries.get(id);
    entry?.lifetime.dispose();
    entry?.watched?.[Symbol.dispose]();
    this.#entries.delete(id);
    return entry?.sandbox;
  }

  /** Stops the clocks; the sandboxes go on. */
  release(): void {
    this.#isReleased = true;
    for (const { lifetime, watched } of this.#entries.values()) {
      lifetime.dispose();
      watched?.[Symbol.dispose]();
    }
    this.#entries.clear();
  }

  #ended(sandbox: Sandbox): void {
    if (this.#entries.get(sandbox.id)?.sandbox !== sandbox) return;
    this.remove(sandbox.id);
    this.#noteEnd(sandbox);
  }

  /** Until it is written down: a disk that is full, often the reason for the end, must not end the node. */
  #noteEnd(sandbox: Sandbox): void {
    if (this.#isReleased) return;
    const { records, events, clock, onError } = this.#options;
    const error = sandbox.failure ?? new SandboxError("internal", { reason: "ended", message: "it ended" });
    const { code, reason, message } = error;
    const failure = { code, reason, message };
    try {
      const record = records.change(sandbox.id, { state: "failed", failure, endedAt: clock.now() });
      events.emit({ kind: "sandbox.failed", tenant: record.tenant, sandboxId: record.id, details: failure });
    } catch (thrown) {
      const problem = SandboxError.from(thrown);
      onError(problem, sandbox.id);
      // One that is not known any more has been seen to.
      if (problem.code !== "not_found") clock.schedule(NOTE_AGAIN_MS, () => this.#noteEnd(sandbox));
    }
  }

  #follow(live: LiveSandbox, process: ProcessHandle): void {
    const { events, observeExec, onError } = this.#options;
    const { id: sandboxId, tenant, provider } = live.record;
    const about = { process: process.id, pid: process.pid };
    // After whoever waits for the process has been answered: writing an event down takes as long as a short command.
    const tell = (kind: "process.started" | "process.exited", details: NewEvent["details"]) =>
      setImmediate(() => {
        if (this.#isReleased) return;
        try {
          events.emit({ kind, tenant, sandboxId, details });
        } catch (thrown) {
          // A disk that is full must not end the node.
          onError(SandboxError.from(thrown), sandboxId);
        }
      });
    tell("process.started", about);
    this.#hold(live, process, ({ exitCode, signal, durationMs }) => {
      observeExec?.(provider, durationMs / 1000);
      tell("process.exited", { ...about, exitCode, signal });
    });
  }

  #hold(live: LiveSandbox, process: ProcessHandle, exited?: (exit: ProcessExit) => void): void {
    const held = live.hold("process");
    process
      .wait()
      .then(exited, () => {})
      .finally(() => held[Symbol.dispose]());
  }
}
