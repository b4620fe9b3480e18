import type { IncomingMessage } from "node:http";
import { NODE_PROOF_HEADER, type NodeProof } from "../cluster/node-proof.ts";

/**
 * Whether a node asks for a WebSocket in the name of its client: nothing on that connection may be passed on again.
 * Throws `unauthenticated` for who only says so.
 */
export function isForwardedUpgrade({ headers, url = "" }: IncomingMessage, proof: NodeProof): boolean {
  const header = headers[NODE_PROOF_HEADER];
  if (header === undefined) return false;
  proof.verify(String(header), { method: "GET", path: url });
  return true;
}
