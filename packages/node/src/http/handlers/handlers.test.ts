import { routes } from "@sandpiper/protocol";
import { expect, it } from "vitest";
import { archiveHandlers } from "./archive.ts";
import { domainCalls } from "./domain-calls.ts";
import { eventHandlers } from "./events.ts";
import { fileHandlers } from "./files.ts";
import { handlers } from "./handlers.ts";
import { imageHandlers } from "./images.ts";
import { networkAuditHandlers } from "./network-audit.ts";
import { previewHandlers } from "./previews.ts";
import { processHandlers } from "./processes.ts";
import { sandboxHandlers } from "./sandboxes.ts";

it("exactly one handler exists for each operation of the table", () => {
  const groups = [archiveHandlers, domainCalls, eventHandlers, fileHandlers, imageHandlers, processHandlers];
  const more = [networkAuditHandlers, previewHandlers, sandboxHandlers];
  const named = [...groups, ...more].flatMap((group) => Object.keys(group));
  expect(named.sort()).toEqual(Object.keys(routes).sort());
  expect(Object.keys(handlers).sort()).toEqual(named);
});
