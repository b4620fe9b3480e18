import type { Check } from "@sandpiper/node";
import { findNodeAddress, type NodeAddress } from "@sandpiper/protocol/address";
import { SandboxError } from "@sandpiper/protocol/error";
import { isListening, noKeyError } from "./find-node.ts";

const name = "server";

/** Whether the node runs that this program would use. A missing one is only a warning where the user named it. */
export async function checkNode(): Promise<Check> {
  try {
    return await checkAddress(findNodeAddress());
  } catch (thrown) {
    const { message, hint } = SandboxError.from(thrown);
    return { name, status: "warning", detail: message, ...(hint === undefined ? {} : { hint }) };
  }
}

async function checkAddress(address: NodeAddress): Promise<Check> {
  const { url, apiKey, isExplicit } = address;
  if (!(await isListening(url))) {
    const detail = `no node is running at ${url}; run, shell and mcp work without one`;
    const hint = isExplicit ? "Start one there, or unset SANDPIPER_URL." : 'Start one with "sandpiper up".';
    return { name, status: isExplicit ? "warning" : "ok", detail, hint };
  }
  const { Client } = await import("@sandpiper/sdk");
  const { version } = await new Client({ url, apiKey }).health();
  if (apiKey === undefined) throw noKeyError(address);
  return { name, status: "ok", detail: `a node is running at ${url}, version ${version}` };
}
