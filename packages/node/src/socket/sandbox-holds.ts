import type { SandboxId } from "@sandpiper/protocol";
import type { LiveSandbox } from "../sandboxes/live-sandbox.ts";

/** Keeps the sandboxes of one connection from becoming idle while it has open streams of them. */
export class SandboxHolds {
  readonly #held = new Map<SandboxId, { count: number; readonly hold: Disposable }>();

  hold(live: LiveSandbox): Disposable {
    const entry = this.#held.get(live.id) ?? { count: 0, hold: live.hold("client") };
    this.#held.set(live.id, entry);
    entry.count++;
    return { [Symbol.dispose]: () => this.#release(live.id, entry) };
  }

  #release(id: SandboxId, entry: { count: number; readonly hold: Disposable }): void {
    entry.count--;
    if (entry.count > 0) return;
    this.#held.delete(id);
    entry.hold[Symbol.dispose]();
  }
}
