/** Asks a node to take over a sandbox, wherever it is. */
export async function handOff(to: { readonly url: string }, id: string, apiKey: string): Promise<void> {
  const response = await fetch(`${to.url}/v1/sandboxes/${id}/handoff`, {
    method: "POST",
    headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
    body: "{}",
  });
  if (!response.ok) throw new Error(`the handoff failed with ${response.status}: ${await response.text()}`);
}
