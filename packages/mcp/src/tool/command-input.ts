import type { CommandOptions } from "@sandpiper/sdk";
import { z } from "zod";
import type { McpSession } from "../session/mcp-session.ts";

const MAX_TIMEOUT_SECONDS = 24 * 3600;

/** How a command is run to its end. */
export const commandInput = {
  cwd: z.string().min(1).optional().describe("Working directory; the user's home directory unless given."),
  env: z.record(z.string(), z.string()).optional().describe("Environment variables of this command."),
  timeout_seconds: z
    .number()
    .positive()
    .max(MAX_TIMEOUT_SECONDS)
    .optional()
    .describe("Kills it, with all that it started, after this time; 120 unless given."),
};

export function optionsOf(
  { cwd, env, timeout_seconds }: z.infer<z.ZodObject<typeof commandInput>>,
  { limits }: McpSession,
): CommandOptions {
  const timeoutMs = timeout_seconds === undefined ? limits.commandTimeoutMs : Math.ceil(timeout_seconds * 1000);
  return { cwd, env, timeoutMs };
}
