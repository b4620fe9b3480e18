import { SandboxError } from "@sandpiper/core";
import { NO_NODE } from "../command/exit-code.ts";
import type { NodeAddress } from "./node-address.ts";

export const KEY_HINT =
  "set SANDPIPER_API_KEY to a key of this node, or SANDPIPER_HOME to the directory of its state; nodes of a cluster share their keys, and the first stands in api-key in the home of the node that began it";

/** One line that says how to come to a node. */
export function noNodeError({ url, isExplicit }: NodeAddress): SandboxError {
  const advice = isExplicit ? "start one there, or correct SANDPIPER_URL" : "start one with: sandpiper up";
  return new SandboxError("unavailable", { reason: NO_NODE, message: `no node runs at ${url}; ${advice}` });
}

export function noKeyError({ url, keyFile }: NodeAddress): SandboxError {
  return new SandboxError("unauthenticated", {
    reason: "no_api_key",
    message: `there is no key for the node at ${url}: SANDPIPER_API_KEY is not set, and ${keyFile} cannot be read`,
    hint: KEY_HINT,
  });
}
