import type { SandboxId } from "@sandpiper/protocol";
import { NODE_PROOF_HEADER, type NodeProof } from "./node-proof.ts";
import { ownerUnreachable } from "./peer-errors.ts";

export const NUDGE_PATH = "/v1/cluster/nudge";
/** A node that the nudge does not reach sees the change at its next lease renewal. */
const TIMEOUT_MS = 2000;

/** Asks another node to look at a sandbox's lock now rather than at its next lease renewal. */
export async function sendNudge(url: string, sandbox: SandboxId, proof: NodeProof): Promise<void> {
  const body = Buffer.from(JSON.stringify({ sandbox }));
  const method = "POST";
  const headers = {
    "content-type": "application/json",
    [NODE_PROOF_HEADER]: proof.sign({ method, path: NUDGE_PATH, body }, url),
  };
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const response = await fetch(`${url}${NUDGE_PATH}`, { method, headers, body, signal, redirect: "error" });
    await response.body?.cancel();
    if (!response.ok) throw new Error(`the response has status ${response.status}`);
  } catch (thrown) {
    throw ownerUnreachable(url, thrown);
  }
}
