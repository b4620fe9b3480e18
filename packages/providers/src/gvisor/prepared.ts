import type { Instance, InstanceSpec, PreparedInstance } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { GvisorHost } from "./host.ts";
import { GvisorInstance } from "./instance.ts";
import { requireLaunched, undoneOnFailure } from "./launch.ts";
import { removeInstance } from "./remove-instance.ts";

/** A gVisor sandbox in which nothing runs yet. */
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
      // Its agent was quiesced, and its channel is new: nobody stopped in the middle of a word.
      return new GvisorInstance(host, { spec, isAdopted: false });
    });
  }

  destroy(): Promise<void> {
    return removeInstance(this.#host, this.id);
  }
}
