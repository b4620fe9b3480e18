import type { ClusterNode } from "./cluster-node.ts";

/** Has a node fetch a sandbox, from wherever it is. */
export async function handOff(to: ClusterNode, id: string, apiKey: string): Promise<void> {
  const response = await fetch(`${to.url}/v1/sandboxes/${id}/handoff`, {
    method: "POST",
    headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
    body: "{}",
  });
  if (!response.ok) throw new Error(`the handoff failed with ${response.status}: ${await response.text()}`);
}
