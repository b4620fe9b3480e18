import type { QmpClient } from "../qmp/qmp-client.ts";

/** Why a machine whose monitor answers cannot continue. */
export async function findTrouble(monitor: Pick<QmpClient, "execute">): Promise<string | undefined> {
  const { status } = await monitor.execute("query-status", {});
  return status === "internal-error" || status === "guest-panicked"
    ? `its virtual machine has stopped: ${status}`
    : undefined;
}

/**
 * Lets a machine continue that QEMU stopped because the host's disk was full: its write is repeated. Resolves to whether the
 * machine had stopped, so that its silence does not count.
 */
export async function continueBlocked(monitor: Pick<QmpClient, "execute">): Promise<boolean> {
  const { status } = await monitor.execute("query-status", {});
  if (status !== "io-error") return false;
  await monitor.execute("cont", {});
  return true;
}
