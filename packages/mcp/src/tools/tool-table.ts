import type { Tool } from "../tool/tool.ts";
import { createSandbox } from "./create-sandbox.ts";
import { runCommand } from "./run-command.ts";

/** Every tool, in the order in which clients list them. */
export const tools: readonly Tool[] = Object.freeze([createSandbox, runCommand]);
