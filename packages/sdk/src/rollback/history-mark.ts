import { SandboxError } from "@sandpiper/protocol";
import type { SandboxLink } from "../sandbox-link.ts";

const REASON = "rolled_back";

/**
 * Which history of a sandbox the streams of a process belong to. One that was set back to a checkpoint has begun another,
 * in which the same offset is another byte.
 */
export class HistoryMark {
  readonly #link: SandboxLink;
  #rollbacks: number | undefined;

  constructor(link: SandboxLink) {
    this.#link = link;
  }

  /** A stream was opened, and stands at this position. An error: in another history than the first one was. */
  enter(rollbacks: number, position: number): SandboxError | undefined {
    this.#rollbacks ??= rollbacks;
    return this.lossAt(rollbacks, position);
  }

  /** Undefined: the same history, as far as that is known. */
  lossAt(rollbacks: number | undefined, position: number): SandboxError | undefined {
    if (rollbacks === undefined || this.#rollbacks === undefined || rollbacks === this.#rollbacks) return undefined;
    this.#link.onRollback();
    return new SandboxError(REASON, {
      message: `sandbox ${this.#link.id} was set back to an earlier checkpoint, and what came after it is lost`,
      hint: "attach to the process again from offset 0 if it is still there, or run the command again",
      details: { position, rollbacks },
    });
  }
}

export function isRolledBack({ code, reason }: SandboxError): boolean {
  return code === "data_loss" && reason === REASON;
}
