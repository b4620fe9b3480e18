import { type Clock, SandboxError } from "@sandpiper/core";
import type { Activity, CheckpointPolicy, SandboxId } from "@sandpiper/protocol";
import type { ActivityWatch } from "../sandboxes/live-sandbox.ts";

/** How long a sandbox must be idle before the policy `onIdle` saves it. */
const IDLE_MS = 2000;
/** An idle sandbox that is used often waits this many times the duration of its last save before the next one. */
const REST_PER_SAVE = 10;

export interface AutomaticCheckpointsOptions {
  readonly clock: Clock;
  /** The sandbox's current policy; without one, it gets no automatic checkpoints. */
  readonly policyOf: (id: SandboxId) => CheckpointPolicy | null | undefined;
  readonly save: (id: SandboxId) => Promise<void>;
  /** Receives failed saves. The next save runs at its regular time. */
  readonly onError: (error: SandboxError, id: SandboxId) => void;
}

interface Watched {
  readonly id: SandboxId;
  readonly held: Map<Activity, number>;
  /** The sandbox may have changed since the last save. */
  isChanged: boolean;
  isSaving: boolean;
  /** Another save was requested during the current one. */
  isWanted: boolean;
  savedAtMs: number;
  lastSaveMs: number;
  activeAtMs: number;
  cancelTimer: () => void;
}

/** Takes checkpoints according to each sandbox's policy, triggered by its activity. */
export class AutomaticCheckpoints {
  readonly #options: AutomaticCheckpointsOptions;

  constructor(options: AutomaticCheckpointsOptions) {
    this.#options = options;
  }

  /** Observes a sandbox's activity and passes it on; dispose it with the sandbox. */
  watch(id: SandboxId, next: ActivityWatch): ActivityWatch & Disposable {
    const now = this.#options.clock.monotonicMs();
    const watched: Watched = {
      id,
      held: new Map(),
      isChanged: true,
      isSaving: false,
      isWanted: false,
      savedAtMs: now,
      lastSaveMs: 0,
      activeAtMs: now,
      cancelTimer: () => {},
    };
    return {
      touch: (activity) => {
        next.touch(activity);
        this.#changed(watched);
      },
      hold: (activity) => {
        const hold = next.hold(activity);
        this.#hold(watched, activity, 1);
        let isHeld = true;
        return {
          [Symbol.dispose]: () => {
            hold[Symbol.dispose]();
            if (isHeld) this.#hold(watched, activity, -1);
            isHeld = false;
          },
        };
      },
      [Symbol.dispose]: () => watched.cancelTimer(),
    };
  }

  #hold(watched: Watched, activity: Activity, change: 1 | -1): void {
    const count = (watched.held.get(activity) ?? 0) + change;
    watched.held.set(activity, count);
    this.#changed(watched);
    const policy = this.#options.policyOf(watched.id);
    if (change === 1 || policy === null || policy === undefined) return;
    const isCommand = activity === "exec" || activity === "process";
    if ((isCommand && policy.perCommand) || (activity === "client" && count === 0 && policy.onDisconnect)) {
      this.#save(watched);
    }
  }

  #changed(watched: Watched): void {
    watched.isChanged = true;
    watched.activeAtMs = this.#options.clock.monotonicMs();
    this.#schedule(watched);
  }

  /** Sets the timer to the earliest time a save may be due. */
  #schedule(watched: Watched): void {
    const { clock, policyOf } = this.#options;
    watched.cancelTimer();
    watched.cancelTimer = () => {};
    const policy = policyOf(watched.id);
    if (policy === null || policy === undefined) return;
    const times = [
      ...(policy.everyMs === null ? [] : [watched.savedAtMs + policy.everyMs]),
      ...(policy.onIdle && watched.isChanged ? [idleSaveAtMs(watched)] : []),
    ];
    if (times.length === 0) return;
    const delayMs = Math.max(0, Math.min(...times) - clock.monotonicMs());
    watched.cancelTimer = clock.schedule(delayMs, () => this.#due(watched));
  }

  #due(watched: Watched): void {
    const { clock, policyOf } = this.#options;
    const policy = policyOf(watched.id);
    // The end of the running save sets the timer again.
    if (policy === null || policy === undefined || watched.isSaving) return;
    const now = clock.monotonicMs();
    const isBusy = (watched.held.get("process") ?? 0) + (watched.held.get("exec") ?? 0) > 0;
    const isTime = policy.everyMs !== null && now - watched.savedAtMs >= policy.everyMs;
    const isIdle = policy.onIdle && !isBusy && now >= idleSaveAtMs(watched);
    if ((isTime && (watched.isChanged || isBusy)) || (isIdle && watched.isChanged)) this.#save(watched);
    else if (isTime) watched.savedAtMs = now;
    if (!watched.isSaving && (isBusy || policy.everyMs !== null)) this.#schedule(watched);
  }

  #save(watched: Watched): void {
    if (watched.isSaving) {
      watched.isWanted = true;
      return;
    }
    const { clock, save, onError } = this.#options;
    const startedAtMs = clock.monotonicMs();
    watched.isSaving = true;
    watched.isChanged = false;
    save(watched.id)
      .catch((thrown) => {
        watched.isChanged = true;
        onError(SandboxError.from(thrown), watched.id);
      })
      .finally(() => {
        watched.isSaving = false;
        watched.savedAtMs = clock.monotonicMs();
        watched.lastSaveMs = watched.savedAtMs - startedAtMs;
        if (watched.isWanted) {
          watched.isWanted = false;
          this.#save(watched);
        } else this.#schedule(watched);
      });
  }
}

function idleSaveAtMs({ activeAtMs, savedAtMs, lastSaveMs }: Watched): number {
  return Math.max(activeAtMs + IDLE_MS, savedAtMs + REST_PER_SAVE * lastSaveMs);
}
