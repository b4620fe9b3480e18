import type { SandboxId } from "@sandpiper/protocol";
import type { LiveSandbox } from "../sandboxes/live-sandbox.ts";
import { Execution } from "./execution.ts";
import type { Session } from "./session.ts";

/** What the sessions of one sandbox share, one after the other. */
export interface SessionSlot {
  readonly live: LiveSandbox;
  /** The one client that is attached. */
  session: Session | undefined;
  /** What runs, or has ended without anybody having been told. */
  execution: Execution | undefined;
  /** Resolves when what an earlier node left running has been looked for. */
  readonly recovered: Promise<void>;
}

/** Who is attached to which sandbox. */
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
