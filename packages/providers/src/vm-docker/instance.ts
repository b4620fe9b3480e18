import type {
  CheckpointOptions,
  ConnectedChannel,
  DestroyOptions,
  Instance,
  InstanceExit,
  SandboxError,
} from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { ProjectEngine } from "./project-engine.ts";

export interface VmDockerInstanceOptions {
  readonly engine: ProjectEngine;
  /** The container in the machine's engine. */
  readonly container: Instance;
  /** Releases the machine. */
  readonly onRemoved: () => Promise<void>;
}

/** A container in a project's machine; it ends no later than the machine. */
export class VmDockerInstance implements Instance {
  readonly id: SandboxId;
  readonly exited: Promise<InstanceExit>;
  readonly service: Instance["service"];
  readonly earlierProcesses: Instance["earlierProcesses"];
  readonly #engine: ProjectEngine;
  readonly #container: Instance;
  readonly #onRemoved: () => Promise<void>;

  constructor({ engine, container, onRemoved }: VmDockerInstanceOptions) {
    this.id = container.id;
    this.service = container.service;
    this.earlierProcesses = container.earlierProcesses;
    this.#engine = engine;
    this.#container = container;
    this.#onRemoved = onRemoved;
    this.exited = Promise.race([container.exited, machineExit(engine)]);
  }

  get addresses(): Instance["addresses"] {
    return this.#engine.ports.of(this.id);
  }

  connect(signal: AbortSignal): Promise<ConnectedChannel> {
    return this.#engine.while((both) => this.#container.connect(both), signal);
  }

  checkpoint(directory: string, options: CheckpointOptions): Promise<void> {
    return this.#engine.while(() => this.#container.checkpoint(directory, options));
  }

  async destroy(options?: DestroyOptions): Promise<void> {
    await this.#engine.whileRunning(() => this.#container.destroy(options));
    await this.#onRemoved();
  }
}

async function machineExit({ vm, gone }: ProjectEngine): Promise<InstanceExit> {
  const { reason } = await vm.exited;
  // `ProjectEngine` subscribed to `exited` first, so `gone` is already aborted.
  const { message } = gone.reason as SandboxError;
  return { reason: reason === "destroyed" ? "destroyed" : "crashed", message };
}
