import { dirname, join } from "node:path";
import { findNodeAddress } from "@sandpiper/protocol/address";
import type { Client } from "@sandpiper/sdk";
import { findNode } from "../target/find-node.ts";
import type { OwnNode, OwnNodeOptions } from "./own-node.ts";

export interface McpClient extends AsyncDisposable {
  readonly client: Client | (() => Promise<Client>);
  /** The node keeps running when this program ends. */
  readonly outlives: boolean;
}

export interface OpenClientOptions extends Pick<OwnNodeOptions, "defaultProvider" | "docker"> {
  /** Not on a node, even if one runs. */
  readonly isEmbedded: boolean;
  readonly onError: (thrown: unknown) => void;
}

/** The node that other verbs would use; without one, a node in this process, started when it is first needed. */
export async function openClient({ isEmbedded, onError, ...config }: OpenClientOptions): Promise<McpClient> {
  const client = isEmbedded ? undefined : await findNode();
  if (client !== undefined) {
    return { client, outlives: true, [Symbol.asyncDispose]: async () => client.close() };
  }
  const state = dirname(findNodeAddress().keyFile as string);
  return embeddedClient({ ...config, directory: join(state, "mcp"), imagesDir: join(state, "images") }, onError);
}

/**
 * Many clients start all their servers and use few of them. Until a sandbox is requested, this only removes the leftovers
 * of earlier programs.
 */
function embeddedClient(options: OwnNodeOptions, onError: (thrown: unknown) => void): McpClient {
  const clearing = clearBefore(options, onError);
  let starting: Promise<OwnNode> | undefined;
  const start = async () => {
    const { startOwnNode } = await import("./own-node.ts");
    return await startOwnNode(options);
  };
  return {
    outlives: false,
    client: async () => {
      starting = start();
      return (await starting).client;
    },
    [Symbol.asyncDispose]: async () => {
      // A failed start was reported to its caller.
      const node = await starting?.catch(() => undefined);
      await node?.[Symbol.asyncDispose]();
      await clearing;
    },
  };
}

async function clearBefore(options: OwnNodeOptions, onError: (thrown: unknown) => void): Promise<void> {
  const { clearDeadNodes } = await import("./clear-dead-nodes.ts");
  await clearDeadNodes(options, { onError }).catch(onError);
}
