import { type Clock, SandboxError } from "@sandpiper/core";
import type { NodeResource } from "@sandpiper/protocol";
import type { NodeDirectory } from "../checkpoints/checkpoint-service.ts";

export interface LoneNodesOptions {
  readonly id: string;
  readonly url: () => string;
  readonly version: string;
  readonly clock: Clock;
  readonly count: () => number;
}

/** A node that shares its store with nobody knows itself alone. */
export class LoneNodes implements NodeDirectory {
  readonly #options: LoneNodesOptions;
  readonly #startedAt: string;

  constructor(options: LoneNodesOptions) {
    this.#options = options;
    this.#startedAt = options.clock.now().toISOString();
  }

  async list(): Promise<readonly NodeResource[]> {
    const { id, url, version, clock, count } = this.#options;
    const seenAt = clock.now().toISOString();
    const self = { isAlive: true, isDraining: false, isThisNode: true, sandboxes: count() };
    return [{ id, url: url(), version, startedAt: this.#startedAt, seenAt, ...self }];
  }

  async drain(): Promise<void> {
    throw new SandboxError("failed_precondition", {
      reason: "no_cluster",
      message: "this node has no others beside it that could take its sandboxes",
      hint: "stop it: its sandboxes go on running, and are there again when it starts; or start nodes with one store",
    });
  }
}
