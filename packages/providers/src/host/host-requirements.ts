import { join } from "node:path";
import { SandboxError } from "@sandpiper/core";
import type { ErrorReason } from "@sandpiper/protocol";
import type { Cgroups } from "./cgroups.ts";
import { findCgroups } from "./find-cgroups.ts";

/** The longest path of a socket that the kernel accepts. */
const MAX_SOCKET_PATH_BYTES = 107;
const ID_BYTES = 36;

/** The error of a host that lacks something. */
export function missing(reason: ErrorReason, message: string, hint: string): SandboxError {
  return new SandboxError(reason, { message, hint });
}

export function requireLinux(what: string): void {
  if (process.platform === "linux") return;
  throw missing("not_linux", `${what} need Linux; this is ${process.platform}`, "use a Linux machine");
}

/** `why` says what root is needed for. */
export function requireRoot(what: string, why: string): void {
  if (process.getuid?.() === 0) return;
  throw missing("not_root", `${what} need root, ${why}`, 'run it again as root: sudo env "PATH=$PATH" …');
}

export function requireCgroups(): Cgroups {
  const cgroups = findCgroups();
  if (cgroups !== undefined) return cgroups;
  throw missing(
    "cgroups_missing",
    "this host has no cgroups with the controllers cpu, memory and pids, in version 2 also cpuset and io",
    "run `npm run setup` in Sandpiper's directory, which mounts them or reports what is missing",
  );
}

/** The sockets of a machine lie in its directory, below the provider's. */
export function requireShortPath(stateDirectory: string, provider: string, sockets: readonly string[]): void {
  const machine = join(stateDirectory, provider, "instances", "x".repeat(ID_BYTES), "machine");
  if (sockets.every((name) => Buffer.byteLength(join(machine, name)) <= MAX_SOCKET_PATH_BYTES)) return;
  throw missing(
    "unusable_state_directory",
    `the path of the state directory ${stateDirectory} is too long for the sockets in it`,
    "set SANDPIPER_HOME to a shorter path",
  );
}
