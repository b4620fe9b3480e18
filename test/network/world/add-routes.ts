import { ip } from "../../cluster/namespaces.ts";

/**
 * Routes everything to the world's host, forbidden addresses included: nothing but a node's own checks holds a sandbox back.
 * The host's own addresses are private ones.
 */
export async function addRoutes(namespace: string, lastByte: number): Promise<void> {
  await ip("-n", namespace, "route", "add", "default", "via", "10.77.0.10");
  await ip("-n", namespace, "address", "add", `fd00:77::${lastByte}/64`, "dev", "eth0", "nodad");
  await ip("-n", namespace, "-6", "route", "add", "default", "via", "fd00:77::10");
}
