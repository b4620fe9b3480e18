import type { Instance, InstanceSpec, PreparedInstance } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { fillVolumes, loadCheckpoint } from "./checkpoint/restore.ts";
import type { DockerHost } from "./host.ts";
import type { EngineImage } from "./image/image.ts";
import { launchInstance } from "./launch.ts";
import { removeInstance } from "./remove-instance.ts";

/** Has an entry but no container yet: the checkpoint brings the image that a container needs. */
export class DockerPrepared implements PreparedInstance {
  readonly #host: DockerHost;
  readonly #spec: InstanceSpec;

  constructor(host: DockerHost, spec: InstanceSpec) {
    this.#host = host;
    this.#spec = spec;
  }

  get id(): SandboxId {
    return this.#spec.id;
  }

  async restore(directory: string, signal: AbortSignal): Promise<Instance> {
    const host = this.#host;
    const spec = this.#spec;
    const options = { spec, home: host.home, directory, signal };
    let image: EngineImage;
    try {
      signal.throwIfAborted();
      image = await loadCheckpoint(host.engine, options);
    } catch (error) {
      await this.destroy();
      throw error;
    }
    return await launchInstance(host, {
      spec,
      image,
      signal,
      onCreated: (container) => fillVolumes(host.engine, container, options),
    });
  }

  /** Keeps the volumes: an earlier instance of the same sandbox left them. */
  destroy(): Promise<void> {
    return removeInstance(this.#host, this.id, { keepsVolumes: true });
  }
}
