import { join } from "node:path";
import type { Clock, Instance, InstanceSpec, PreparedInstance } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { copyDisks, STATE_FILE } from "./checkpoint-files.ts";
import type { QemuHost } from "./host.ts";
import { QemuInstance } from "./instance.ts";
import { undoneOnFailure } from "./launch.ts";
import { launchMachine, makeMachineDirectory } from "./machine/launch-machine.ts";
import type { MachineShape } from "./machine/machine-shape.ts";
import { loadState } from "./machine/migration.ts";
import { removeInstance } from "./remove-instance.ts";

export interface QemuPreparedOptions {
  readonly spec: InstanceSpec;
  readonly shape: MachineShape;
  readonly clock: Clock;
}

/** Prepared for a restore: the machine starts when its saved state is there. */
export class QemuPrepared implements PreparedInstance {
  readonly #host: QemuHost;
  readonly #options: QemuPreparedOptions;

  constructor(host: QemuHost, options: QemuPreparedOptions) {
    this.#host = host;
    this.#options = options;
  }

  get id(): SandboxId {
    return this.#options.spec.id;
  }

  async restore(saved: string, signal: AbortSignal): Promise<Instance> {
    const host = this.#host;
    const { spec, shape, clock } = this.#options;
    return await undoneOnFailure(host, this.id, async () => {
      const directory = await makeMachineDirectory(host.machineDirectory(this.id));
      await copyDisks(saved, directory);
      const stateFile = join(saved, STATE_FILE);
      const machine = { name: this.id, directory, shape, memory: {}, hasBaseDisk: true };
      const { monitor, agent } = await launchMachine(host, { ...machine, stateFile, ignoresShared: false, signal });
      await loadState(monitor);
      return new QemuInstance(host, { spec, clock, monitor, agent });
    });
  }

  destroy(): Promise<void> {
    return removeInstance(this.#host, this.id);
  }
}
