import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createProvider } from "../../embedded/create-provider.ts";
import { type SocketNode, startSocketNode } from "./socket-node.ts";

/** Starts a node with WebSockets and gVisor sandboxes. Disposing it removes all of them. */
export async function startGvisorNode(): Promise<SocketNode> {
  const home = await mkdtemp(join(tmpdir(), "sandpiper-socket-gvisor-"));
  const provider = createProvider("gvisor", { home });
  const node = await startSocketNode({ provider });
  return {
    ...node,
    async [Symbol.asyncDispose]() {
      await node[Symbol.asyncDispose]();
      for (const { id } of await provider.list()) await provider.remove(id);
      await rm(home, { recursive: true });
    },
  };
}
