import { SandboxError } from "@sandpiper/core";
import type { Check } from "@sandpiper/node";
import { isListening } from "./is-listening.ts";
import { noKeyError } from "./no-node-error.ts";
import { type NodeAddress, nodeAddress } from "./node-address.ts";

const name = "server";

/** Whether a node runs that this program would talk to. Without one most of it still works. */
export async function checkNode(env: NodeJS.ProcessEnv = process.env): Promise<Check> {
  try {
    return await checkAddress(await nodeAddress(env));
  } catch (thrown) {
    const { message, hint } = SandboxError.from(thrown);
    return { name, status: "warning", detail: message, ...(hint === undefined ? {} : { hint }) };
  }
}

async function checkAddress(address: NodeAddress): Promise<Check> {
  const { url, apiKey, isExplicit } = address;
  if (!(await isListening(url))) {
    const detail = `no node runs at ${url}; run and shell work without one`;
    const hint = isExplicit ? "Start one there, or unset SANDPIPER_URL." : "Start one with: sandpiper up";
    return { name, status: isExplicit ? "warning" : "ok", detail, hint };
  }
  const { Client } = await import("@sandpiper/sdk");
  const { version } = await new Client({ url, apiKey }).health();
  if (apiKey === undefined) throw noKeyError(address);
  return { name, status: "ok", detail: `a node runs at ${url}, version ${version}` };
}
