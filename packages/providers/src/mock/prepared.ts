import type { Clock, Instance, PreparedInstance } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { readCheckpoint } from "./checkpoint-file.ts";
import type { MockFaults } from "./faults.ts";
import type { MockInstance } from "./instance.ts";
import { sleep } from "./sleep.ts";

export interface MockPreparedOptions {
  /** The instance, which runs nothing yet. */
  readonly instance: MockInstance;
  readonly clock: Clock;
  readonly faults: MockFaults;
}

/** Prepared for a restore, in memory. */
export class MockPrepared implements PreparedInstance {
  readonly #options: MockPreparedOptions;

  constructor(options: MockPreparedOptions) {
    this.#options = options;
  }

  get id(): SandboxId {
    return this.#options.instance.id;
  }

  async restore(directory: string, signal: AbortSignal): Promise<Instance> {
    const { instance, clock, faults } = this.#options;
    try {
      if (faults.restoreDelayMs !== undefined) await sleep(clock, faults.restoreDelayMs, signal);
      signal.throwIfAborted();
      if (faults.restoreFailure !== undefined) throw faults.restoreFailure;
      instance.restore(await readCheckpoint(directory));
      return instance;
    } catch (thrown) {
      await instance.destroy();
      throw thrown;
    }
  }

  destroy(): Promise<void> {
    return this.#options.instance.destroy();
  }
}
