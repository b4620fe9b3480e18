import { type Clock, SandboxError } from "@sandpiper/core";
import type { DrainNodeBody, NodeResource } from "@sandpiper/protocol";

/** The nodes of a cluster. A standalone node lists only itself. */
export interface NodeDirectory {
  list(): Promise<readonly NodeResource[]>;
  /** Resolves when this node owns no more sandboxes. It accepts none until it is restarted. */
  drain(options: DrainNodeBody): Promise<void>;
}

export interface StandaloneNodesOptions {
  readonly id: string;
  readonly url: () => string;
  readonly version: string;
  readonly clock: Clock;
  readonly count: () => number;
}

export class StandaloneNodes implements NodeDirectory {
  readonly #options: StandaloneNodesOptions;
  readonly #startedAt: string;

  constructor(options: StandaloneNodesOptions) {
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
    throw new SandboxError("no_cluster", {
      message: "cannot drain a standalone node: no other node can take its sandboxes",
    });
  }
}
