import type { KillList, KillTarget } from "../host/kill-list.ts";

/**
 * The kill list for containers in a machine. The lease guard reaches the machine's engine only through this program, so if
 * it hangs, the guard kills the machine.
 */
export function machineKillList(killList: KillList, machine: () => readonly KillTarget[]): KillList {
  return {
    set: (id, targets) => {
      const cgroups = machine().flatMap((target) => ("cgroup" in target ? [target.cgroup] : []));
      killList.set(
        id,
        targets.map((target) =>
          "containers" in target ? { containers: { ...target.containers, machine: { cgroups } } } : target,
        ),
      );
    },
    delete: (id) => killList.delete(id),
  };
}
