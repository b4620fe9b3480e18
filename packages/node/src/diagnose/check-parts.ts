import { SandboxError } from "@sandpiper/core";
import { findAgent, findCgroups, findRunsc } from "../embedded/create-provider.ts";
import type { Check } from "./check.ts";

/** Checks what gVisor sandboxes need. */
export async function checkParts(): Promise<Check[]> {
  return [await checkRunsc(), checkCgroups(), checkAgent()];
}

async function checkRunsc(): Promise<Check> {
  const found = await findRunsc(undefined);
  if ("reason" in found) return { name: "runsc", status: "failed", detail: found.reason, hint: found.hint };
  return { name: "runsc", status: "ok", detail: `${found.version} at ${found.path}` };
}

function checkCgroups(): Check {
  const cgroups = findCgroups();
  if (cgroups !== undefined) return { name: "cgroups", status: "ok", detail: `version ${cgroups.version}` };
  const detail = "not mounted with the controllers cpu, memory and pids (version 2: also cpuset and io)";
  return { name: "cgroups", status: "failed", detail, hint: "Run: npm run setup, in Sandpiper's directory." };
}

function checkAgent(): Check {
  try {
    return { name: "agent", status: "ok", detail: findAgent() };
  } catch (thrown) {
    const { message, hint } = SandboxError.from(thrown);
    return { name: "agent", status: "failed", detail: message, ...(hint === undefined ? {} : { hint }) };
  }
}
