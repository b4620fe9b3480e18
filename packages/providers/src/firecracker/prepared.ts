import { join } from "node:path";
import type { Clock, Instance, InstanceSpec, PreparedInstance } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { FirecrackerHost } from "./host.ts";
import { FirecrackerInstance } from "./instance.ts";
import { undoneOnFailure } from "./launch.ts";
import { machineDirectory } from "./machine/jail.ts";
import { guestHostname, restoreMachine } from "./machine/launch-machine.ts";
import { VSOCK_SOCKET } from "./machine/machine-files.ts";
import type { MachineShape } from "./machine/machine-shape.ts";
import { tellGuest } from "./machine/tell-guest.ts";
import { removeInstance } from "./remove-instance.ts";
import { untilConnected } from "./vsock/vsock-connection.ts";

export interface FirecrackerPreparedOptions {
  readonly spec: InstanceSpec;
  readonly shape: MachineShape;
  readonly clock: Clock;
}

/** Prepared for a restore: the machine starts when its saved state is there. */
export class FirecrackerPrepared implements PreparedInstance {
  readonly #host: FirecrackerHost;
  readonly #options: FirecrackerPreparedOptions;

  constructor(host: FirecrackerHost, options: FirecrackerPreparedOptions) {
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
      const directory = host.store.directory(this.id);
      await restoreMachine(host, saved, { name: this.id, directory, shape, signal });
      const agent = await untilConnected(join(machineDirectory(directory), VSOCK_SOCKET), signal);
      const { maxProcesses } = spec;
      await tellGuest(agent, { hostname: guestHostname(this.id), maxProcesses, clock, signal });
      return new FirecrackerInstance(host, { spec, clock });
    });
  }

  destroy(): Promise<void> {
    return removeInstance(this.#host, this.id);
  }
}
