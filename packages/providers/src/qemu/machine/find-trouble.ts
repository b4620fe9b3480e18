import type { QmpClient } from "../qmp/qmp-client.ts";

/** Why a machine whose monitor answers cannot continue. */
export async function findTrouble(monitor: Pick<QmpClient, "execute">): Promise<string | undefined> {
  const { status } = await monitor.execute("query-status", {});
  return status === "internal-error" || status === "guest-panicked"
    ? `its virtual machine has stopped: ${status}`
    : undefined;
}
