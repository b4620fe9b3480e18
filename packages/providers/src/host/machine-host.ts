import { join } from "node:path";
import type { InstanceExit, InstanceRecord } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { endCgroup } from "./end-cgroup.ts";
import { requireCgroups } from "./host-requirements.ts";
import { instanceCgroup } from "./instance-cgroup.ts";
import { InstanceStore } from "./instance-store.ts";
import { cgroupTargets, type KillList } from "./kill-list.ts";
import { removeAbandonedMachines, type TransientMachineHost } from "./transient-machine.ts";

/** The virtual machines of this host that run in one emulator. */
export interface MachineHost extends TransientMachineHost {
  readonly emulator: string;
  readonly store: InstanceStore;
  cgroupOf(id: SandboxId): Promise<string>;
  /** The last output of the emulator and of the guest's kernel. */
  explain(id: SandboxId): Promise<string>;
}

export interface MachineHostOptions extends Pick<MachineHost, "emulator"> {
  /** The provider's own directory in the state directory. */
  readonly name: string;
  readonly stateDirectory: string;
  /** Receives the directory of an instance. */
  readonly explain: (directory: string) => Promise<string>;
  readonly killList?: KillList | undefined;
  /** The name of an instance's cgroup, where it differs from the id. */
  readonly cgroupName?: ((directory: string) => Promise<string | undefined>) | undefined;
}

/** Enough to find and end machines, also where no new machine can start. */
export function findMachineHost(options: MachineHostOptions): MachineHost {
  const { emulator, name, stateDirectory, explain, killList, cgroupName } = options;
  const directory = join(stateDirectory, name);
  const cgroupPath = (id: string) => instanceCgroup(id, { stateDirectory });
  const cgroupOf = async (id: SandboxId) => cgroupPath((await cgroupName?.(store.directory(id))) ?? id);
  const targetsOf = async (id: SandboxId) => cgroupTargets(await cgroupOf(id));
  const store: InstanceStore = new InstanceStore(join(directory, "instances"), { killList, targetsOf });
  return {
    emulator,
    store,
    cgroups: requireCgroups(),
    transientMachines: join(directory, "transient"),
    cgroupPath,
    cgroupOf,
    explain: (id) => explain(store.directory(id)),
  };
}

/** All instances of this host, of any owner; ends the transient machines of dead programs. */
export async function listMachines(host: MachineHost): Promise<InstanceRecord[]> {
  await removeAbandonedMachines(host);
  return await host.store.records(async (id) => (await host.cgroups.processes(await host.cgroupOf(id))).length > 0);
}

/**
 * Removes every trace of an instance in any state. Its directory goes last, so that an interrupted removal can be found
 * and repeated.
 */
export async function removeMachine(host: MachineHost, id: SandboxId): Promise<void> {
  await host.store.beginRemoval(id);
  await endCgroup(host.cgroups, await host.cgroupOf(id));
  await host.store.remove(id);
}

/** Why a machine has ended. Must run before its cgroup is removed, because the cgroup counts the OOM kills. */
export async function findMachineExit(host: MachineHost, id: SandboxId): Promise<InstanceExit> {
  const { emulator } = host;
  if (await host.store.isRemoved(id)) return { reason: "destroyed", message: "it was removed by its id" };
  if ((await host.cgroups.oomKills(await host.cgroupOf(id))) > 0) {
    const message = `${emulator} used more memory than its guest's memory and its own allowance`;
    return { reason: "out_of_memory", message };
  }
  return { reason: "crashed", message: (await host.explain(id)) || `${emulator} ended without an error message` };
}
