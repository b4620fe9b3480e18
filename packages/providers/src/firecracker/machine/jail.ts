import { createHash } from "node:crypto";
import { chown, mkdir, symlink } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Firecracker } from "../find-firecracker.ts";
import { API_SOCKET, MACHINE_LOG } from "./machine-files.ts";

/** Above all users of a normal host, and below the numbers that the kernel reads as negative. */
const FIRST_UID = 0x6000_0000;
const UID_DIGITS = 7;
const MIB = 2 ** 20;

/** The isolated directory of one machine. */
export interface Jail {
  /** A unique id, from which its user and its cgroup follow. */
  readonly name: string;
  /** The root of the jail, through a short path for the sockets in it. */
  readonly machine: string;
  /** The directory below which the jailer works. */
  readonly base: string;
  readonly uid: number;
}

export function machineDirectory(directory: string): string {
  return join(directory, "machine");
}

export function machineUid(name: string): number {
  return FIRST_UID + Number.parseInt(createHash("sha256").update(name).digest("hex").slice(0, UID_DIGITS), 16);
}

/** Makes the jailer's directories in advance, so that files can be put into them before it starts. */
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

/**
 * The jailer's command line: a new root, an unprivileged user, and a limit on the size of files. The log is set here and
 * not through the API, because Firecracker writes to its console until it has a log.
 */
export function jailerCommand(firecracker: Firecracker, { name, base, uid }: Jail, maxFileMib: number): string[] {
  return [
    firecracker.jailer,
    ...["--id", name, "--exec-file", firecracker.program, "--uid", String(uid), "--gid", String(uid)],
    ...["--chroot-base-dir", base, "--resource-limit", `fsize=${maxFileMib * MIB}`],
    ...["--", "--api-sock", `/${API_SOCKET}`, "--log-path", `/${MACHINE_LOG}`, "--level", "Warning"],
  ];
}
