import type { Handlers } from "../call.ts";
import { archiveHandlers } from "./archive.ts";
import { checkpointHandlers } from "./checkpoints.ts";
import { containerHandlers } from "./containers.ts";
import { eventHandlers } from "./events.ts";
import { fileHandlers } from "./files.ts";
import { keyHandlers } from "./keys.ts";
import { nodeHandlers } from "./node.ts";
import { clusterHandlers } from "./nodes.ts";
import { poolHandlers } from "./pools.ts";
import { processHandlers } from "./processes.ts";
import { sandboxHandlers } from "./sandboxes.ts";
import { webhookHandlers } from "./webhooks.ts";

/** By resource; no operation stands in two of them. */
export const handlerGroups = {
  sandboxes: sandboxHandlers,
  checkpoints: checkpointHandlers,
  containers: containerHandlers,
  processes: processHandlers,
  files: fileHandlers,
  archive: archiveHandlers,
  events: eventHandlers,
  keys: keyHandlers,
  pools: poolHandlers,
  webhooks: webhookHandlers,
  nodes: clusterHandlers,
  node: nodeHandlers,
} as const;

/** Every operation of the REST interface. */
export const handlers: Handlers = {
  ...sandboxHandlers,
  ...checkpointHandlers,
  ...containerHandlers,
  ...processHandlers,
  ...fileHandlers,
  ...archiveHandlers,
  ...eventHandlers,
  ...keyHandlers,
  ...poolHandlers,
  ...webhookHandlers,
  ...clusterHandlers,
  ...nodeHandlers,
};
