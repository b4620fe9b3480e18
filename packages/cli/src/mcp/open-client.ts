import { dirname, join } from "node:path";
import type { Client } from "@sandpiper/sdk";
import { findNode } from "../target/find-node.ts";
import { nodeAddress } from "../target/node-address.ts";
import type { OwnNodeOptions } from "./own-node.ts";

export interface McpClient extends AsyncDisposable {
  readonly client: Client;
  /** The node goes on when this program has ended. */
  readonly outlives: boolean;
}

export interface OpenClientOptions extends Pick<OwnNodeOptions, "defaultProvider" | "docker"> {
  /** Not on a node, even if one runs. */
  readonly isEmbedded: boolean;
  readonly onError: (thrown: unknown) => void;
}

/** The node that other verbs would use; where none runs, one in this very program. */
export async function openClient({ isEmbedded, onError, ...config }: OpenClientOptions): Promise<McpClient> {
  const client = isEmbedded ? undefined : await findNode();
  if (client !== undefined) {
    return { client, outlives: true, [Symbol.asyncDispose]: async () => client.close() };
  }
  const [{ startOwnNode }, { clearDeadNodes }] = await Promise.all([
    import("./own-node.ts"),
    import("./clear-dead-nodes.ts"),
  ]);
  const state = dirname((await nodeAddress()).keyFile);
  const options = { ...config, directory: join(state, "mcp"), imagesDir: join(state, "images") };
  const node = await startOwnNode(options);
  // Beside everything else: nobody's first answer waits for what others left.
  const clearing = clearDeadNodes(options, { onError });
  const end = async () => {
    await node[Symbol.asyncDispose]();
    await clearing;
  };
  return { client: node.client, outlives: false, [Symbol.asyncDispose]: end };
}
