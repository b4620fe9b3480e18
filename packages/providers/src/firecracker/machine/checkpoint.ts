import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { SandboxId } from "@sandpiper/protocol";
import type { ApiClient } from "../api/api-client.ts";
import { makeSnapshotDirectory, NEXT_SNAPSHOT, takeSnapshot } from "./checkpoint-files.ts";
import { copySparse } from "./copy-sparse.ts";
import { machineUid } from "./jail.ts";
import { DISK, MEMORY, STATE } from "./machine-files.ts";

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
