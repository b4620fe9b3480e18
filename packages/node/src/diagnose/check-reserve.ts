import { SandboxError, systemClock } from "@sandpiper/core";
import { loadNodeConfig } from "../config/load-node-config.ts";
import { HostReserve } from "../sandboxes/host-reserve.ts";
import type { Check } from "./check.ts";

const name = "reserve";

/** Compares what is free with the reserve of a node that has this home and this environment. */
export async function checkReserve(home: string, env: NodeJS.ProcessEnv = process.env): Promise<Check> {
  try {
    const reserve = HostReserve.of(await loadNodeConfig({ env: { ...env, SANDPIPER_HOME: home } }), systemClock);
    const parts = reserve.report().map(({ resource, free, reserve: kept, unit }) => {
      const amount = resource === unit ? `${free} ${unit}` : `${free} ${unit} of ${resource}`;
      return `${amount} free, ${kept === 0 ? "no reserve" : `reserve ${kept}`}`;
    });
    const detail = parts.join("; ");
    const low = reserve.lowOn();
    if (low.length === 0) return { name, status: "ok", detail };
    const hint = `A node here starts nothing new: free some ${low.join(" and ")}, or lower the setting reserve.`;
    return { name, status: "warning", detail, hint };
  } catch (thrown) {
    const { message, hint } = SandboxError.from(thrown);
    return { name, status: "warning", detail: message, ...(hint === undefined ? {} : { hint }) };
  }
}
