import { type Quota, SandboxError } from "@sandpiper/protocol";
import type { Usage } from "../records/sandbox-record.ts";
import type { Principal } from "./principal.ts";

const limits = [
  { quota: "maxSandboxes", measure: "sandboxes", unit: "sandboxes" },
  { quota: "maxMemoryMib", measure: "memoryMib", unit: "MiB of memory" },
  { quota: "maxVcpuCount", measure: "vcpuCount", unit: "virtual CPUs" },
] as const satisfies readonly { quota: keyof Quota; measure: keyof Usage; unit: string }[];

/** Parts of a CPU are added as floating-point numbers: 0.1 and 0.2 must fit into 0.3. */
const ROUNDING = 1e-9;

/** Throws when a key would take more than it may. */
export function requireQuota(principal: Principal, usage: Usage, wanted: Usage): void {
  if (principal.kind !== "key") return;
  for (const { quota, measure, unit } of limits) {
    const limit = principal.quota[quota];
    if (limit === null || usage[measure] + wanted[measure] <= limit + ROUNDING) continue;
    throw new SandboxError("resource_exhausted", {
      reason: "quota_exceeded",
      message: `no sandbox was created: the key ${principal.keyId} may have ${limit} ${unit}, uses ${usage[measure]} and wants ${wanted[measure]} more`,
      hint: "destroy a sandbox of this key, ask for less, or use a key with a larger quota",
      details: { quota, used: usage[measure], wanted: wanted[measure], limit },
    });
  }
}
