import { SandboxError } from "@sandpiper/protocol";
import type { SandboxLink } from "../sandbox-link.ts";

const REASON = "rolled_back";

/**
 * The history of a sandbox to which the streams of a process belong. A rollback starts another history, in which the same
 * offset is another byte.
 */
export class HistoryMark {
  readonly #link: SandboxLink;
  #rollbacks: number | undefined;

  constructor(link: SandboxLink) {
    this.#link = link;
  }

  /** Records that a stream was opened at this position. Returns an error if its history is not that of the first stream. */
  enter(rollbacks: number, position: number): SandboxError | undefined {
    this.#rollbacks ??= rollbacks;
    return this.lossAt(rollbacks, position);
  }

  /** Undefined when the history is the same, as far as known. */
  lossAt(rollbacks: number | undefined, position: number): SandboxError | undefined {
    if (rollbacks === undefined || this.#rollbacks === undefined || rollbacks === this.#rollbacks) return undefined;
    this.#link.onRollback();
    return new SandboxError(REASON, {
      message: `sandbox ${this.#link.id} was restored to an earlier checkpoint; later output is lost`,
      hint: "attach to the process again from offset 0 if it is still there, or run the command again",
      details: { position, rollbacks },
    });
  }
}

export function isRolledBack({ code, reason }: SandboxError): boolean {
  return code === "data_loss" && reason === REASON;
}
