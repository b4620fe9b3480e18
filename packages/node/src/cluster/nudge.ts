import type { SandboxId } from "@sandpiper/protocol";
import { NODE_PROOF_HEADER, type NodeProof } from "./node-proof.ts";
import { ownerUnreachable } from "./peer-errors.ts";

export const NUDGE_PATH = "/v1/cluster/nudge";
/** Who is not reached by then sees it by itself, when it next looks at its leases. */
const TIMEOUT_MS = 2000;

/** Tells another node to look at a sandbox's lock now: what takes a look from time to time then takes milliseconds. */
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
    if (!response.ok) throw new Error(`the answer's status is ${response.status}`);
  } catch (thrown) {
    throw ownerUnreachable(url, thrown);
  }
}
