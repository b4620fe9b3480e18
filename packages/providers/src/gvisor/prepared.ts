import type { Instance, InstanceSpec, PreparedInstance } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { GvisorHost } from "./host.ts";
import { GvisorInstance } from "./instance.ts";
import { requireLaunched, undoneOnFailure } from "./launch.ts";
import { removeInstance } from "./remove-instance.ts";

/** Prepared for a restore: a gVisor sandbox without processes. */
export class GvisorPrepared implements PreparedInstance {
  readonly #host: GvisorHost;
  readonly #spec: InstanceSpec;

  constructor(host: GvisorHost, spec: InstanceSpec) {
    this.#host = host;
    this.#spec = spec;
  }

  get id(): SandboxId {
    return this.#spec.id;
  }

  async restore(directory: string, signal: AbortSignal): Promise<Instance> {
    const host = this.#host;
    const spec = this.#spec;
    return await undoneOnFailure(host, this.id, async () => {
      const result = await host.runsc.restore(spec, host.store.directory(this.id), directory, signal);
      await requireLaunched(host, spec, result, signal);
      // The agent was quiesced and its channel is new, so no frame is incomplete.
      return new GvisorInstance(host, { spec, isAdopted: false });
    });
  }

  destroy(): Promise<void> {
    return removeInstance(this.#host, this.id);
  }
}
