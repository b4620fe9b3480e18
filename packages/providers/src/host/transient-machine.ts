import { randomBytes } from "node:crypto";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Cgroups } from "./cgroups.ts";
import { endCgroup } from "./end-cgroup.ts";
import { currentOwner } from "./process-owner.ts";
import { findAbandoned, transientName } from "./transient-name.ts";

/** Short, because the machine's directory holds sockets, whose paths are limited. */
const NAME_BYTES = 8;

/** A machine that belongs to no sandbox yet: a prepared one, a template that boots, or a test of KVM. */
export interface TransientMachine {
  readonly name: string;
  readonly directory: string;
}

export interface TransientMachineHost {
  /** The directory that holds the directories of all transient machines. */
  readonly transientMachines: string;
  readonly cgroups: Cgroups;
  cgroupPath(name: string): string;
}

/** The directory's name records the program that owns it, so that a later program can find and end what it left. */
export async function createTransientMachine(host: TransientMachineHost): Promise<TransientMachine> {
  const name = randomBytes(NAME_BYTES).toString("hex");
  const directory = join(host.transientMachines, transientName(name, await currentOwner()));
  await mkdir(directory, { recursive: true, mode: 0o700 });
  return { name, directory };
}

export async function removeTransientMachine(
  host: TransientMachineHost,
  { name, directory }: TransientMachine,
): Promise<void> {
  await endCgroup(host.cgroups, host.cgroupPath(name));
  await rm(directory, { recursive: true, force: true });
}

/** Ends and removes the transient machines of programs that have died. */
export async function removeAbandonedMachines(host: TransientMachineHost): Promise<void> {
  const abandoned = await findAbandoned(host.transientMachines);
  await Promise.all(
    abandoned.map((entry) =>
      removeTransientMachine(host, {
        name: entry.slice(0, entry.indexOf("~")),
        directory: join(host.transientMachines, entry),
      }),
    ),
  );
}
