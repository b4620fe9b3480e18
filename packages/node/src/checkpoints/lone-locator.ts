import type { KeyedMutex } from "@sandpiper/core";
import { isSandboxId, type SandboxId, type SandboxResource } from "@sandpiper/protocol";
import { mayAccess } from "../auth/access.ts";
import type { Principal } from "../auth/principal.ts";
import type { SandboxRecords } from "../records/sandbox-record.ts";
import type { LiveSandboxes } from "../service/live-sandboxes.ts";
import type { BringOptions, Locator, Purpose, Whereabout } from "./locator.ts";
import type { NodeCheckpoints } from "./node-checkpoints.ts";

export interface LoneLocatorOptions {
  readonly live: LiveSandboxes;
  readonly records: SandboxRecords;
  readonly turns: KeyedMutex<SandboxId>;
  readonly checkpoints: NodeCheckpoints;
}

/** On a node that shares nothing, every sandbox is here. */
export class LoneLocator implements Locator {
  readonly #options: LoneLocatorOptions;

  constructor(options: LoneLocatorOptions) {
    this.#options = options;
  }

  locate(principal: Principal, id: string, purpose: Purpose = "use"): Promise<Whereabout> | undefined {
    if (purpose !== "use" || this.#options.live.get(id as SandboxId) !== undefined) return undefined;
    return this.#settle(principal, id);
  }

  /** There is no elsewhere. */
  setAttached(): void {}

  async bring(principal: Principal, id: string, { onWaiting }: BringOptions): Promise<SandboxResource> {
    const record = this.#options.records.get(id as SandboxId);
    const isVisible = record && mayAccess(principal, "sandbox", { readOnly: false, sandbox: record });
    if (isVisible && (record.state === "paused" || record.state === "stopped")) onWaiting?.();
    return await this.#options.checkpoints.resume(principal, id);
  }

  async #settle(principal: Principal, id: string): Promise<Whereabout> {
    const { records, turns, checkpoints } = this.#options;
    if (!isSandboxId(id)) return { kind: "here" };
    await turns.free(id);
    const record = records.get(id);
    if (record?.state === "stopped" && mayAccess(principal, "sandbox", { readOnly: true, sandbox: record })) {
      await checkpoints.awaken(id);
    }
    return { kind: "here" };
  }
}
