import { join } from "node:path";
import { type Clock, SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { ApiClient } from "./api/api-client.ts";
import type { FirecrackerState } from "./host.ts";
import { FirecrackerInstance } from "./instance.ts";
import { machineDirectory } from "./machine/jail.ts";
import { API_SOCKET } from "./machine/machine-files.ts";

/** A machine that is being saved answers afterwards. */
const ANSWER_MS = 30_000;

/** Takes over a machine whose program has ended. */
export async function adoptInstance(host: FirecrackerState, id: SandboxId, clock: Clock): Promise<FirecrackerInstance> {
  const { spec } = await host.store.claim(id);
  const api = new ApiClient(join(machineDirectory(host.store.directory(id)), API_SOCKET));
  const { state } = await api.describe(AbortSignal.timeout(ANSWER_MS)).catch((error: unknown) => {
    throw new SandboxError("instance_ended", {
      message: `instance ${id} cannot be adopted: its Firecracker does not answer`,
      hint: "remove the instance, and create a new sandbox",
      cause: error,
    });
  });
  // The program may have died while the machine was paused for a checkpoint.
  if (state === "Paused") await api.send("PATCH /vm", { state: "Resumed" });
  return new FirecrackerInstance(host, { spec, clock });
}
