import type { Instance, PreparedInstance } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { VmDockerInstance, type VmDockerInstanceOptions } from "./instance.ts";

export interface VmDockerPreparedOptions extends Omit<VmDockerInstanceOptions, "container"> {
  /** The prepared instance in the machine's engine. */
  readonly prepared: PreparedInstance;
}

/** A prepared instance in a project's machine. */
export class VmDockerPrepared implements PreparedInstance {
  readonly id: SandboxId;
  readonly #options: VmDockerPreparedOptions;

  constructor(options: VmDockerPreparedOptions) {
    this.id = options.prepared.id;
    this.#options = options;
  }

  async restore(directory: string, signal: AbortSignal): Promise<Instance> {
    const { prepared, engine, onRemoved } = this.#options;
    try {
      const container = await engine.while((both) => prepared.restore(directory, both), signal);
      return new VmDockerInstance({ engine, container, onRemoved });
    } catch (thrown) {
      await onRemoved();
      throw thrown;
    }
  }

  async destroy(): Promise<void> {
    const { prepared, engine, onRemoved } = this.#options;
    try {
      await engine.while(() => prepared.destroy());
    } catch (thrown) {
      if (!engine.gone.aborted) throw thrown;
    }
    await onRemoved();
  }
}
