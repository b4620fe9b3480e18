import type { InstanceExit } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { LiveSandbox } from "../sandboxes/live-sandbox.ts";
import { Execution } from "./execution.ts";

/** The client that is attached to a sandbox. */
interface AttachedSession {
  /** The client has begun to close its connection. */
  readonly isLeaving: boolean;
  /** Ends the session because another client takes over. */
  detach(): void;
  sandboxEnded(exit: InstanceExit): Promise<void>;
}

/** The state that successive sessions of one sandbox share. */
export interface SessionSlot {
  readonly live: LiveSandbox;
  session: AttachedSession | undefined;
  /** Running, or ended without its end delivered. */
  execution: Execution | undefined;
  /** Resolves after the search for an execution of the node's previous process. */
  readonly recovered: Promise<void>;
}

/** Knows which client is attached to which sandbox. */
export class SessionRegistry {
  readonly #slots = new Map<SandboxId, SessionSlot>();

  slotOf(live: LiveSandbox): SessionSlot {
    const known = this.#slots.get(live.id);
    if (known?.live === live) return known;
    const slot: SessionSlot = {
      live,
      session: undefined,
      execution: undefined,
      recovered: Execution.find(live).then(
        (found) => {
          slot.execution ??= found;
        },
        () => {},
      ),
    };
    this.#slots.set(live.id, slot);
    live.closed.then((exit) => {
      if (this.#slots.get(live.id) === slot) this.#slots.delete(live.id);
      slot.session?.sandboxEnded(exit);
    });
    return slot;
  }
}
