import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { SandboxId } from "@sandpiper/protocol";

const CGROUP_ROOT = "/sys/fs/cgroup";

/** Something that the lease guard kills to end an instance. It may not exist yet. */
export type KillTarget =
  /** The directory of a cgroup. */
  | { readonly cgroup: string }
  | { readonly containers: ContainersTarget }
  /** The id of a container of this host, whose cgroups are named after it. */
  | { readonly container: string }
  /** A program with its arguments, which kills and then exits with 0. */
  | { readonly command: readonly string[] };

/** The containers of a sandbox on an engine without TLS. */
interface ContainersTarget {
  /** The address is the path of a socket, or `host:port`. */
  readonly engine: { readonly address: string; readonly apiVersion: string };
  /** The label of the home that the containers belong to. */
  readonly home: string;
  /** The virtual machine of the engine, which is killed if the engine does not answer. */
  readonly machine?: { readonly cgroups: readonly string[] } | undefined;
}

/** What the lease guard kills for each instance. Providers set it before anything of the instance runs. */
export interface KillList {
  set(id: SandboxId, targets: readonly KillTarget[]): void;
  /** For an instance that was removed. */
  delete(id: SandboxId): void;
}

/** A cgroup, by its path below the root, in every hierarchy. */
export function cgroupTargets(path: string): KillTarget[] {
  return hierarchies().map((hierarchy) => ({ cgroup: join(hierarchy, path) }));
}

let found: readonly string[] | undefined;

function hierarchies(): readonly string[] {
  found ??= findHierarchies();
  return found;
}

function findHierarchies(): string[] {
  if (!existsSync(CGROUP_ROOT)) return [];
  const candidates = [CGROUP_ROOT, ...readdirSync(CGROUP_ROOT).map((name) => join(CGROUP_ROOT, name))];
  // In v2 the root is itself a hierarchy, and the directories below it belong to it.
  const [first, ...others] = candidates.filter((path) => existsSync(join(path, "cgroup.procs")));
  if (first === undefined) return [];
  return first === CGROUP_ROOT ? [first] : [first, ...others];
}
