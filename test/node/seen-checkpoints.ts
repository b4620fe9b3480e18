import type { Sandbox } from "@sandpiper/sdk";

/** Follows a sandbox's list of checkpoints across polls. */
export class SeenCheckpoints {
  readonly #sandbox: Sandbox;
  readonly #ids = new Set<string>();
  mostAtOnce = 0;

  constructor(sandbox: Sandbox) {
    this.#sandbox = sandbox;
  }

  /** Reads the list and returns how many different checkpoints it has shown so far. */
  async count(): Promise<number> {
    const checkpoints = await this.#sandbox.checkpoints();
    this.mostAtOnce = Math.max(this.mostAtOnce, checkpoints.length);
    for (const { id } of checkpoints) this.#ids.add(id);
    return this.#ids.size;
  }
}
