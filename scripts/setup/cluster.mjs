import { planDebianPrograms } from "./debian-programs.mjs";
import { findAnywhere } from "./programs.mjs";

/** What tests of several nodes run, with its package: a load balancer, and networks. */
const PROGRAMS = { haproxy: "haproxy", ip: "iproute2" };

/** @returns {import("./plan.mjs").Plan} */
export function planCluster() {
  const missing = Object.entries(PROGRAMS).filter(([program]) => findAnywhere(program) === undefined);
  if (missing.length === 0) return { detail: Object.keys(PROGRAMS).join(", "), problems: [] };
  return planDebianPrograms(
    missing.map(([, name]) => name),
    "to test several nodes.",
  );
}
