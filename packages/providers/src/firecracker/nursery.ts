import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { endCgroup } from "../host/end-cgroup.ts";
import { currentOwner } from "../host/process-owner.ts";
import { findAbandoned, transientName } from "../host/transient-name.ts";
import type { MachinePlace } from "./host.ts";

/** A place for a machine that is no instance: one that shows whether there can be any. */
export interface NurseryPlace {
  readonly name: string;
  readonly directory: string;
}

let made = 0;

/** Its name says which program made it: what a dead one left is found and ended. */
export async function makeNurseryPlace(host: MachinePlace): Promise<NurseryPlace> {
  const entry = transientName(`try-${made++}`, await currentOwner());
  const place = { name: machineName(entry), directory: join(host.nursery, entry) };
  await mkdir(place.directory, { recursive: true, mode: 0o700 });
  return place;
}

export async function clearNurseryPlace(host: MachinePlace, { name, directory }: NurseryPlace): Promise<void> {
  await endCgroup(host.cgroups, host.cgroupPath(name));
  await rm(directory, { recursive: true, force: true });
}

/** Ends and removes what programs that are no more have left. */
export async function sweepNursery(host: MachinePlace): Promise<void> {
  const abandoned = await findAbandoned(host.nursery);
  await Promise.all(
    abandoned.map((entry) =>
      clearNurseryPlace(host, { name: machineName(entry), directory: join(host.nursery, entry) }),
    ),
  );
}

/** As the jailer takes it: letters, digits and hyphens. */
function machineName(entry: string): string {
  return entry.replaceAll("~", "-");
}
