import type { Client } from "@sandpiper/sdk";
import { isListening } from "./is-listening.ts";
import { noKeyError, noNodeError } from "./no-node-error.ts";
import { type NodeAddress, nodeAddress } from "./node-address.ts";

/** The node that a command line is for; one that does not run is an error. */
export async function requireNode(env: NodeJS.ProcessEnv = process.env): Promise<Client> {
  const address = await nodeAddress(env);
  if (!(await isListening(address.url))) throw noNodeError(address);
  if (address.apiKey === undefined) throw noKeyError(address);
  return connectTo(address);
}

/**
 * The node, when one runs. Without a key in this user's state directory none was ever started from it, so that most who
 * use no node do not pay for looking; a node that was named in SANDPIPER_URL must be there.
 */
export async function findNode(env: NodeJS.ProcessEnv = process.env): Promise<Client | undefined> {
  const address = await nodeAddress(env);
  if (address.isExplicit) return requireNode(env);
  if (address.apiKey === undefined || !(await isListening(address.url))) return undefined;
  return connectTo(address);
}

async function connectTo({ url, apiKey }: NodeAddress): Promise<Client> {
  const { Client } = await import("@sandpiper/sdk");
  return new Client({ url, ...(apiKey === undefined ? {} : { apiKey }) });
}
