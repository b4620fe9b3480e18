import { type Clock, type GuestPort, type PortWatcher, SandboxError } from "@sandpiper/core";
import type { Activity, SandboxId } from "@sandpiper/protocol";
import type { ActivityWatch } from "../sandboxes/live-sandbox.ts";

/** Most commands end sooner, and a sandbox that only runs those is not watched. */
const DELAY_MS = 300;
/** How long a sandbox is watched after its last use. */
const REST_MS = 60_000;
/** A sandbox whose programs run without being used is watched for longer, but not for good: watching costs CPU time. */
const RUNNING_MS = 600_000;
/** A guest must not fill the event log. */
const MAX_EVENTS_PER_MINUTE = 60;
const MINUTE_MS = 60_000;

export interface PortEventsOptions {
  readonly clock: Clock;
  /** Rejects if the sandbox does not run. */
  readonly watchPorts: (id: SandboxId, signal: AbortSignal) => Promise<PortWatcher>;
  readonly listPorts: (id: SandboxId) => Promise<readonly GuestPort[]>;
  readonly emit: (id: SandboxId, kind: "port.opened" | "port.closed", port: GuestPort) => void;
  readonly onError: (error: SandboxError, id: SandboxId) => void;
}

interface Watched {
  readonly id: SandboxId;
  /** Ports that are open as far as events say. */
  readonly known: Map<number, GuestPort>;
  running: number;
  activeAtMs: number;
  minuteAtMs: number;
  eventsInMinute: number;
  /** The agent is too old to list ports. */
  isUnable: boolean;
  watching: AbortController | undefined;
  cancelTimer: (() => void) | undefined;
}

/** Emits an event when a port of a sandbox opens or closes, while the sandbox is in use. Watching is no use itself. */
export class PortEvents {
  readonly #options: PortEventsOptions;

  constructor(options: PortEventsOptions) {
    this.#options = options;
  }

  /** Observes a sandbox's activity and passes it on; dispose it with the sandbox. */
  watch(id: SandboxId, next: ActivityWatch): ActivityWatch & Disposable {
    const nowMs = this.#options.clock.monotonicMs();
    const watched: Watched = {
      id,
      known: new Map(),
      running: 0,
      activeAtMs: nowMs,
      minuteAtMs: nowMs,
      eventsInMinute: 0,
      isUnable: false,
      watching: undefined,
      cancelTimer: undefined,
    };
    return {
      touch: (activity) => {
        next.touch(activity);
        this.#used(watched, activity);
      },
      hold: (activity) => {
        const hold = next.hold(activity);
        this.#used(watched, activity);
        const isRunning = activity === "process" || activity === "exec";
        if (isRunning) watched.running++;
        let isHeld = true;
        return {
          [Symbol.dispose]: () => {
            hold[Symbol.dispose]();
            if (isHeld && isRunning) watched.running--;
            isHeld = false;
            this.#used(watched, activity);
          },
        };
      },
      [Symbol.dispose]: () => {
        watched.isUnable = true;
        watched.cancelTimer?.();
        watched.watching?.abort();
      },
    };
  }

  #used(watched: Watched, activity: Activity): void {
    // Output and attached clients do not open ports.
    if (activity === "output" || activity === "client") return;
    const { clock } = this.#options;
    watched.activeAtMs = clock.monotonicMs();
    if (watched.isUnable || watched.watching !== undefined) return;
    watched.cancelTimer ??= clock.schedule(DELAY_MS, () => {
      watched.cancelTimer = undefined;
      this.#begin(watched);
    });
  }

  #begin(watched: Watched): void {
    const watching = new AbortController();
    watched.watching = watching;
    this.#endLater(watched);
    this.#run(watched, watching.signal)
      .catch((thrown) => this.#failed(watched, SandboxError.from(thrown)))
      .finally(() => {
        watched.cancelTimer?.();
        watched.cancelTimer = undefined;
        watched.watching = undefined;
      });
  }

  async #run(watched: Watched, signal: AbortSignal): Promise<void> {
    const { watchPorts, listPorts } = this.#options;
    const open = await listPorts(watched.id);
    for (const port of [...watched.known.values()]) {
      if (!open.some((other) => other.port === port.port)) this.#changed(watched, "closed", port);
    }
    await using watcher = await watchPorts(watched.id, signal);
    for await (const { kind, ...port } of watcher) this.#changed(watched, kind, port);
  }

  #changed(watched: Watched, kind: "opened" | "closed", port: GuestPort): void {
    const { clock, emit } = this.#options;
    if (watched.known.has(port.port) === (kind === "opened")) return;
    if (kind === "opened") watched.known.set(port.port, port);
    else watched.known.delete(port.port);
    const nowMs = clock.monotonicMs();
    if (nowMs - watched.minuteAtMs >= MINUTE_MS) Object.assign(watched, { minuteAtMs: nowMs, eventsInMinute: 0 });
    if (watched.eventsInMinute++ < MAX_EVENTS_PER_MINUTE) emit(watched.id, `port.${kind}`, port);
  }

  #endLater(watched: Watched): void {
    const { clock } = this.#options;
    const limitMs = watched.running > 0 ? RUNNING_MS : REST_MS;
    const leftMs = watched.activeAtMs + limitMs - clock.monotonicMs();
    if (leftMs <= 0) watched.watching?.abort();
    else watched.cancelTimer = clock.schedule(Math.min(leftMs, REST_MS), () => this.#endLater(watched));
  }

  #failed(watched: Watched, error: SandboxError): void {
    if (error.code === "unimplemented") watched.isUnable = true;
    // A sandbox that ends, or whose channel is lost, is not a fault; the next use begins again.
    const isExpected = ["canceled", "unavailable", "unimplemented", "failed_precondition"].includes(error.code);
    if (!isExpected) this.#options.onError(error, watched.id);
  }
}
