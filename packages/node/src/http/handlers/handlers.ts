import type { Handlers } from "../call.ts";
import { archiveHandlers } from "./archive.ts";
import { checkpointHandlers } from "./checkpoints.ts";
import { containerHandlers } from "./containers.ts";
import { eventHandlers } from "./events.ts";
import { fileHandlers } from "./files.ts";
import { keyHandlers } from "./keys.ts";
import { nodeHandlers } from "./node.ts";
import { poolHandlers } from "./pools.ts";
import { processHandlers } from "./processes.ts";
import { sandboxHandlers } from "./sandboxes.ts";
import { webhookHandlers } from "./webhooks.ts";

/** The handlers by resource. */
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
  node: nodeHandlers,
} as const;

/** The handlers of all operations. */
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
  ...nodeHandlers,
};
