import type { QmpClient } from "../qmp/qmp-client.ts";

/** What keeps a machine whose monitor answers from going on. */
export async function findTrouble(monitor: Pick<QmpClient, "execute">): Promise<string | undefined> {
  const { status } = await monitor.execute("query-status", {});
  return status === "internal-error" || status === "guest-panicked"
    ? `its virtual machine stands still: ${status}`
    : undefined;
}
