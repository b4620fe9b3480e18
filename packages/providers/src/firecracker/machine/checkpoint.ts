import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { SandboxId } from "@sandpiper/protocol";
import type { ApiClient } from "../api/api-client.ts";
import { makeSnapshotPlace, NEXT_SNAPSHOT, takeSnapshot } from "./checkpoint-files.ts";
import { copySparse } from "./copy-sparse.ts";
import { machineUid } from "./jail.ts";
import { DISK, MEMORY, STATE } from "./machine-files.ts";

export interface SaveMachineOptions {
  readonly id: SandboxId;
  /** Of the machine, as its Firecracker sees it. */
  readonly machine: string;
  /** Where to. */
  readonly directory: string;
  readonly keepsRunning: boolean;
}

/** Saves memory, the state of devices, and the disk; on failure, and if it is to keep running, the machine goes on afterwards. */
export async function saveMachine(api: ApiClient, options: SaveMachineOptions): Promise<void> {
  const { id, machine, directory, keepsRunning } = options;
  const place = await makeSnapshotPlace(machine, machineUid(id));
  await api.send("PATCH /vm", { state: "Paused" });
  try {
    await api.send("PUT /snapshot/create", {
      snapshot_type: "Full",
      snapshot_path: join(NEXT_SNAPSHOT, STATE),
      mem_file_path: join(NEXT_SNAPSHOT, MEMORY),
    });
    await copySparse(join(machine, DISK), join(directory, DISK));
    await takeSnapshot(place, directory);
  } catch (error) {
    await api.send("PATCH /vm", { state: "Resumed" });
    await rm(place, { recursive: true, force: true });
    throw error;
  }
  if (keepsRunning) await api.send("PATCH /vm", { state: "Resumed" });
}
