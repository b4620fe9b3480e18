import type { Handlers } from "../call.ts";
import { archiveHandlers } from "./archive.ts";
import { domainCalls } from "./domain-calls.ts";
import { eventHandlers } from "./events.ts";
import { fileHandlers } from "./files.ts";
import { imageHandlers } from "./images.ts";
import { networkAuditHandlers } from "./network-audit.ts";
import { previewHandlers } from "./previews.ts";
import { processHandlers } from "./processes.ts";
import { sandboxHandlers } from "./sandboxes.ts";

/** The handlers of all operations. */
export const handlers: Handlers = {
  ...domainCalls,
  ...sandboxHandlers,
  ...processHandlers,
  ...fileHandlers,
  ...archiveHandlers,
  ...eventHandlers,
  ...imageHandlers,
  ...networkAuditHandlers,
  ...previewHandlers,
};
