import type { Clock } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { RestoreStep, SaveStep } from "../checkpoints/save-restore.ts";

/** In the order in which a handoff takes them; `prepared` may come at any time before `restored`. */
export type HandoffStep =
  /** The sender: it has noticed the waiter and has the sandbox's mutex. */
  | "begun"
  | SaveStep
  | "released"
  | "ended"
  /** The receiver: it has read the lock and the stored state. */
  | "located"
  | "prepared"
  /** It waits in the lock, and has nudged the owner. */
  | "registered"
  | "acquired"
  | "claimed"
  | RestoreStep
  | "running";

/** One node's side of a handoff. */
export interface HandoffReport {
  readonly id: SandboxId;
  readonly side: "sender" | "receiver";
  /** The milliseconds from the start of the handoff to the end of each step. */
  readonly stepsMs: Readonly<Partial<Record<HandoffStep, number>>>;
}

/** Measures the steps of a handoff on one node. */
export class HandoffSteps {
  readonly #clock: Clock;
  readonly #startedAtMs: number;
  readonly #stepsMs: Partial<Record<HandoffStep, number>> = {};

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedAtMs = clock.monotonicMs();
  }

  get stepsMs(): HandoffReport["stepsMs"] {
    return this.#stepsMs;
  }

  readonly mark = (step: HandoffStep): void => {
    this.#stepsMs[step] = Math.round((this.#clock.monotonicMs() - this.#startedAtMs) * 10) / 10;
  };
}
