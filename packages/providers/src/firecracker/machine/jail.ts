import { createHash } from "node:crypto";
import { chown, mkdir, symlink } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Firecracker } from "../find-firecracker.ts";
import { API_SOCKET } from "./machine-files.ts";

/** Far above any user that a machine has, and below where the kernel takes numbers for negative. */
const FIRST_UID = 0x6000_0000;
const UID_DIGITS = 7;
const MIB = 2 ** 20;

/** Where a machine lives that nobody else has to do with. */
export interface Jail {
  /** An id that no other machine has: its user and its cgroup follow from it. */
  readonly name: string;
  /** All that its Firecracker sees of the filesystem, by a short path: sockets in it have to be reached. */
  readonly machine: string;
  /** Below which the jailer makes its own directories. */
  readonly base: string;
  readonly uid: number;
}

export function machineDirectory(directory: string): string {
  return join(directory, "machine");
}

export function machineUid(name: string): number {
  return FIRST_UID + Number.parseInt(createHash("sha256").update(name).digest("hex").slice(0, UID_DIGITS), 16);
}

/** Makes the directories that the jailer would make, so that files can be put into them before it starts. */
export async function makeJail(firecracker: Firecracker, name: string, directory: string): Promise<Jail> {
  const base = join(directory, "jail");
  const inside = join(basename(firecracker.program), name, "root");
  const uid = machineUid(name);
  await mkdir(join(base, inside), { recursive: true, mode: 0o700 });
  await chown(join(base, inside), uid, uid);
  const machine = machineDirectory(directory);
  await symlink(join("jail", inside), machine);
  return { name, machine, base, uid };
}

/** The jailer's command line: a new root, a user without rights, no files larger than the largest that it needs. */
export function jailerCommand(firecracker: Firecracker, { name, base, uid }: Jail, maxFileMib: number): string[] {
  return [
    firecracker.jailer,
    ...["--id", name, "--exec-file", firecracker.program, "--uid", String(uid), "--gid", String(uid)],
    ...["--chroot-base-dir", base, "--resource-limit", `fsize=${maxFileMib * MIB}`],
    ...["--", "--api-sock", `/${API_SOCKET}`],
  ];
}
