import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { endCgroup } from "../host/end-cgroup.ts";
import { currentOwner } from "../host/process-owner.ts";
import { findAbandoned, transientName } from "../host/transient-name.ts";
import type { QemuPlace } from "./host.ts";
import { makeMachineDirectory } from "./launch-machine.ts";

/** Short, since there are sockets in such places, whose paths may not be long. */
const NAME_BYTES = 8;

/** A place for a machine that is no instance: a template in the making, or a copy of one that nobody has asked for yet. */
export interface NurseryPlace {
  readonly name: string;
  readonly directory: string;
}

/** Its name says which program made it: what a dead one left is found and ended. */
export async function makeNurseryPlace(host: QemuPlace): Promise<NurseryPlace> {
  const name = randomBytes(NAME_BYTES).toString("hex");
  const directory = join(host.nursery, transientName(name, await currentOwner()));
  return { name, directory: await makeMachineDirectory(directory) };
}

export async function clearNurseryPlace(host: QemuPlace, { name, directory }: NurseryPlace): Promise<void> {
  await endCgroup(host.cgroups, host.cgroupPath(name));
  await rm(directory, { recursive: true, force: true });
}

/** Ends and removes what programs that are no more had in the making. */
export async function sweepNursery(host: QemuPlace): Promise<void> {
  const abandoned = await findAbandoned(host.nursery);
  await Promise.all(
    abandoned.map((entry) =>
      clearNurseryPlace(host, { name: entry.slice(0, entry.indexOf("~")), directory: join(host.nursery, entry) }),
    ),
  );
}
