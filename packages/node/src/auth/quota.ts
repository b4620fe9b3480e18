import { type Quota, SandboxError } from "@sandpiper/protocol";
import type { Usage } from "../records/sandbox-record.ts";
import type { Principal } from "./principal.ts";

const limits = [
  { quota: "maxSandboxes", measure: "sandboxes", unit: "sandboxes" },
  { quota: "maxMemoryMib", measure: "memoryMib", unit: "MiB of memory" },
  { quota: "maxVcpuCount", measure: "vcpuCount", unit: "virtual CPUs" },
] as const satisfies readonly { quota: keyof Quota; measure: keyof Usage; unit: string }[];

/** Fractions of a CPU are added as floating-point numbers: 0.1 + 0.2 must fit into 0.3. */
const ROUNDING = 1e-9;

/** Throws if the wanted resources would exceed the key's quota. */
export function requireQuota(principal: Principal, usage: Usage, wanted: Usage): void {
  if (principal.kind !== "key") return;
  for (const { quota, measure, unit } of limits) {
    const limit = principal.quota[quota];
    if (limit === null || usage[measure] + wanted[measure] <= limit + ROUNDING) continue;
    throw new SandboxError("quota_exceeded", {
      message: `cannot create the sandbox: the key ${principal.keyId} has a quota of ${limit} ${unit}, of which ${usage[measure]} are used, and the sandbox needs ${wanted[measure]}`,
      details: { quota, used: usage[measure], wanted: wanted[measure], limit },
    });
  }
}
