import { constants } from "node:fs";
import { chmod, chown, copyFile, link, mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { hasCode } from "../../host/has-code.ts";
import type { ApiClient } from "../api/api-client.ts";
import { copySparse } from "./copy-sparse.ts";
import { type Jail, machineUid } from "./jail.ts";
import { DISK, MEMORY, SNAPSHOT, STATE } from "./machine-files.ts";

const SAVED = [STATE, MEMORY];
const READ_ONLY = 0o444;
/** Not `SNAPSHOT`, because the machine may still read its memory from there. */
const NEXT_SNAPSHOT = "next-snapshot";
/** A directory that no machine has. */
const NOWHERE = "no-such-directory";

export interface SaveMachineOptions {
  readonly id: SandboxId;
  /** The machine's directory, which is the root of its jail. */
  readonly machine: string;
  readonly directory: string;
  readonly keepsRunning: boolean;
}

/** Saves memory, device state and disk. The machine continues afterwards if it keeps running or if the save fails. */
export async function saveMachine(api: ApiClient, options: SaveMachineOptions): Promise<void> {
  const { id, machine, directory, keepsRunning } = options;
  const snapshot = await makeSnapshotDirectory(machine, machineUid(id));
  await api.send("PATCH /vm", { state: "Paused" });
  try {
    await api.send("PUT /snapshot/create", {
      snapshot_type: "Full",
      snapshot_path: join(NEXT_SNAPSHOT, STATE),
      mem_file_path: join(NEXT_SNAPSHOT, MEMORY),
    });
    await copySparse(join(machine, DISK), join(directory, DISK));
    await takeSnapshot(snapshot, directory);
  } catch (error) {
    await api.send("PATCH /vm", { state: "Resumed" });
    await rm(snapshot, { recursive: true, force: true });
    throw error;
  }
  if (keepsRunning) await api.send("PATCH /vm", { state: "Resumed" });
}

/**
 * Resumes a machine whose program died between the pause and the save. Firecracker 1.16.0 and 1.16.1 block the vsock device
 * of a machine that is resumed without a save. A save resets the device, even one that fails because its files cannot be
 * created.
 */
export async function resumeAbandoned(api: ApiClient): Promise<void> {
  const nowhere = { snapshot_path: join(NOWHERE, STATE), mem_file_path: join(NOWHERE, MEMORY) };
  await api.send("PUT /snapshot/create", { snapshot_type: "Full", ...nowhere }).catch((error: unknown) => {
    if (!(error instanceof SandboxError) || error.reason !== "firecracker_refused") throw error;
  });
  await api.send("PATCH /vm", { state: "Resumed" });
}

/** Links a saved machine into a jail without copying it. The files stay while a machine runs from them. */
export async function linkSnapshot(saved: string, { machine }: Pick<Jail, "machine">): Promise<void> {
  const directory = join(machine, SNAPSHOT);
  await mkdir(directory, { mode: 0o755 });
  await Promise.all(
    SAVED.map(async (name) => {
      const [from, to] = [join(saved, name), join(directory, name)];
      await chmod(from, READ_ONLY);
      await link(from, to).catch((error: unknown) => {
        if (!hasCode(error, "EXDEV")) throw error;
        return copySparse(from, to);
      });
    }),
  );
}

/** An empty directory that Firecracker can write a snapshot to. */
async function makeSnapshotDirectory(machine: string, uid: number): Promise<string> {
  const directory = join(machine, NEXT_SNAPSHOT);
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { mode: 0o700 });
  await chown(directory, uid, uid);
  return directory;
}

/** Moves a snapshot out of the jail. */
async function takeSnapshot(snapshot: string, directory: string): Promise<void> {
  for (const name of SAVED) {
    const [from, to] = [join(snapshot, name), join(directory, name)];
    await rename(from, to).catch(async (error: unknown) => {
      if (!hasCode(error, "EXDEV")) throw error;
      await copyFile(from, to, constants.COPYFILE_EXCL);
    });
    await chown(to, process.getuid?.() ?? 0, process.getgid?.() ?? 0);
  }
  await rm(snapshot, { recursive: true, force: true });
}
