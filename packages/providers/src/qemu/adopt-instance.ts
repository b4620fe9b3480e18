import { join } from "node:path";
import { type Clock, SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { QemuState } from "./host.ts";
import { QemuInstance } from "./instance.ts";
import { MONITOR_SOCKET } from "./machine/machine-arguments.ts";
import { QmpClient } from "./qmp/qmp-client.ts";

/** QEMU accepts a new client once it has noticed that the last one is gone. */
const MONITOR_TIMEOUT_MS = 10_000;

/** Takes over a machine whose program has ended. */
export async function adoptInstance(host: QemuState, id: SandboxId, clock: Clock): Promise<QemuInstance> {
  const { spec } = await host.store.claim(id);
  const path = join(host.machineDirectory(id), MONITOR_SOCKET);
  const monitor = await QmpClient.connect(path, AbortSignal.timeout(MONITOR_TIMEOUT_MS)).catch((error: unknown) => {
    throw new SandboxError("instance_ended", {
      message: `instance ${id} cannot be adopted: its virtual machine does not answer`,
      hint: "remove the instance, and create a new sandbox",
      cause: error,
    });
  });
  // The program may have died while the machine was paused for a checkpoint.
  if (!(await monitor.execute("query-status", {})).running) await monitor.execute("cont", {});
  return new QemuInstance(host, { spec, clock, monitor });
}
