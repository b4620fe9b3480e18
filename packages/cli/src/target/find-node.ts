import { connect } from "node:net";
import { findNodeAddress, type NodeAddress } from "@sandpiper/protocol/address";
import { SandboxError } from "@sandpiper/protocol/error";
import type { Client } from "@sandpiper/sdk";
import { NO_NODE } from "../command/exit-code.ts";
import { KEY_HINT } from "../command/report-error.ts";

/** A machine of the same network answers within this time. */
const CONNECT_TIMEOUT_MS = 2_000;

/** The node that a command line is for; fails when it does not run. */
export async function requireNode(env: NodeJS.ProcessEnv = process.env): Promise<Client> {
  const address = findNodeAddress(env);
  if (!(await isListening(address.url))) throw noNodeError(address);
  if (address.apiKey === undefined) throw noKeyError(address);
  return connectTo(address);
}

/**
 * The node, when one runs. Without a key in this user's home directory none was ever started from it, so users without a
 * node do not pay for looking; a node that SANDPIPER_URL names must run.
 */
export async function findNode(env: NodeJS.ProcessEnv = process.env): Promise<Client | undefined> {
  const address = findNodeAddress(env);
  if (address.isExplicit) return requireNode(env);
  if (address.apiKey === undefined || !(await isListening(address.url))) return undefined;
  return connectTo(address);
}

async function connectTo({ url, apiKey }: NodeAddress): Promise<Client> {
  const { Client } = await import("@sandpiper/sdk");
  return new Client({ url, ...(apiKey === undefined ? {} : { apiKey }) });
}

/** Whether a program accepts connections there; much cheaper than a request when none does. */
export function isListening(url: string): Promise<boolean> {
  const { hostname, port, protocol } = new URL(url);
  const defaultPort = protocol === "https:" ? 443 : 80;
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  return new Promise((resolve) => {
    const socket = connect({ host, port: port === "" ? defaultPort : Number(port), timeout: CONNECT_TIMEOUT_MS });
    const finish = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    socket.once("connect", () => finish(true));
    socket.once("error", () => finish(false));
    socket.once("timeout", () => finish(false));
  });
}

/** One line, without a hint. */
function noNodeError({ url, isExplicit }: NodeAddress): SandboxError {
  const advice = isExplicit ? "start one there, or correct SANDPIPER_URL" : 'start one with "sandpiper up"';
  return new SandboxError(NO_NODE, { message: `no node is running at ${url}: ${advice}` });
}

export function noKeyError({ url, keyFile }: NodeAddress): SandboxError {
  return new SandboxError("no_credential", {
    message: `no API key for the node at ${url}: SANDPIPER_API_KEY is not set, and ${keyFile} cannot be read`,
    hint: KEY_HINT,
  });
}
