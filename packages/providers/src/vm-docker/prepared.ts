import type { Instance, PreparedInstance } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { VmDockerInstance, type VmDockerInstanceOptions } from "./instance.ts";

export interface VmDockerPreparedOptions extends Omit<VmDockerInstanceOptions, "container"> {
  /** In the machine's engine. */
  readonly place: PreparedInstance;
}

/** A place for a sandbox in a project's machine. */
export class VmDockerPrepared implements PreparedInstance {
  readonly id: SandboxId;
  readonly #options: VmDockerPreparedOptions;

  constructor(options: VmDockerPreparedOptions) {
    this.id = options.place.id;
    this.#options = options;
  }

  async restore(directory: string, signal: AbortSignal): Promise<Instance> {
    const { place, engine, onRemoved } = this.#options;
    try {
      const container = await engine.while((both) => place.restore(directory, both), signal);
      return new VmDockerInstance({ engine, container, onRemoved });
    } catch (thrown) {
      await onRemoved();
      throw thrown;
    }
  }

  async destroy(): Promise<void> {
    const { place, engine, onRemoved } = this.#options;
    try {
      await engine.while(() => place.destroy());
    } catch (thrown) {
      if (!engine.gone.aborted) throw thrown;
    }
    await onRemoved();
  }
}
