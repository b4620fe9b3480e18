import type { SandboxId, SandboxResource } from "@sandpiper/protocol";
import type { Principal } from "../auth/principal.ts";
import type { SavedSandbox } from "../ownership/saved-sandbox.ts";

/** Where a sandbox is, as far as whoever asks may know: what they may not see is here, where it is not found. */
export type Whereabout =
  | { readonly kind: "here" }
  | { readonly kind: "node"; readonly id: string; readonly url: string };

/** `store`: no node has it, and it stays so. */
export type Found = Whereabout | { readonly kind: "store"; readonly saved: SavedSandbox };

/** What somebody wants with a sandbox: to see what is known of it, to end it, or to use it. */
export type Purpose = "look" | "end" | "use";

export interface BringOptions {
  /** Also when a client is attached to it on another node. */
  readonly takeover: boolean;
  readonly signal?: AbortSignal | undefined;
  /** It will take a while: it has to be restored. */
  readonly onWaiting?: (() => void) | undefined;
}

/** Finds sandboxes for those who want to use them. */
export interface Locator {
  /**
   * For whom it is to be used, unless said: waits for one that is being saved or restored, and restores one that was stopped;
   * whoever only looks, or ends it, has nothing restored. Undefined: it is here, and nobody needs to wait.
   */
  locate(principal: Principal, id: string, purpose?: Purpose): Promise<Found> | undefined;
  /** Whether a client of a session has it: whoever wants it elsewhere without taking over is then refused. */
  setAttached(id: SandboxId, isAttached: boolean): void;
  /** Has it run here, wherever it was, also when it was paused. */
  bring(principal: Principal, id: string, options: BringOptions): Promise<SandboxResource>;
}
