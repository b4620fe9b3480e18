import { readdir, realpath, stat } from "node:fs/promises";
import { isAbsolute } from "node:path";
import { SandboxError } from "@sandpiper/core";
import type { ErrorReason } from "@sandpiper/protocol";
import { isWithin } from "../host/is-within.ts";
import { bindMount, type Mount, tmpfsMount } from "./mount.ts";

/** The files that a sandbox starts from. They are read-only: writes go to the instance's own layer. */
export interface Image {
  readonly root: string;
  readonly mounts: readonly Mount[];
}

/** Any directory of the host as a root filesystem. */
export async function directoryImage(rootfs: string, stateDirectory: string): Promise<Image> {
  const refuse = (reason: ErrorReason, why: string) =>
    new SandboxError(reason, {
      message: `the root filesystem ${JSON.stringify(rootfs)} cannot be used: ${why}`,
      hint: 'give "host", or the absolute path of a directory with a whole root filesystem',
    });
  if (!isAbsolute(rootfs)) throw refuse("relative_rootfs", "its path is not absolute");
  const root = await realpath(rootfs).catch(() => undefined);
  if (root === undefined) throw refuse("no_such_rootfs", "the path does not exist");
  if (!(await stat(root)).isDirectory()) throw refuse("rootfs_not_a_directory", "it is not a directory");
  const state = await realpath(stateDirectory);
  if (isWithin(state, root) || isWithin(root, state)) {
    throw refuse("rootfs_overlaps_state", `it overlaps ${state}, where Sandpiper keeps its state`);
  }
  return { root, mounts: await tmpMounts(root) };
}

/** Mounts that hide private directories of the host where a read-only bind would show them. */
export function maskMounts(binds: readonly string[], privateDirectories: readonly string[]): Mount[] {
  return privateDirectories
    .filter((path) => binds.some((bind) => isWithin(bind, path)))
    .map((path) => tmpfsMount(path, ["ro", "mode=0755", "size=4k"]));
}

export function readOnlyBinds(paths: readonly string[]): Mount[] {
  return paths.map((path) => bindMount(path, path));
}

/** gVisor mounts a tmpfs on an empty /tmp; with a file in it, /tmp counts as disk. */
async function tmpMounts(root: string): Promise<Mount[]> {
  const names = await readdir(`${root}/tmp`).catch(() => []);
  return names.length > 0 ? [] : [tmpfsMount("/tmp/.X11-unix", ["mode=1777", "size=64k"])];
}
