import type { CommandOptions } from "@sandpiper/sdk";
import { z } from "zod";
import type { McpSession } from "../session/mcp-session.ts";
import { cwdInput, envInput } from "./fields.ts";

const MAX_TIMEOUT_SECONDS = 24 * 3600;

/** The parameters of tools that run a command to its end. */
export const commandInput = {
  cwd: cwdInput,
  env: envInput.describe("Environment variables of this command."),
  timeout_seconds: z
    .number()
    .positive()
    .max(MAX_TIMEOUT_SECONDS)
    .optional()
    .describe("Kills the command and its descendants after this time; the default is 120."),
};

export function optionsOf(
  { cwd, env, timeout_seconds }: z.infer<z.ZodObject<typeof commandInput>>,
  { limits }: McpSession,
): CommandOptions {
  const timeoutMs = timeout_seconds === undefined ? limits.commandTimeoutMs : Math.ceil(timeout_seconds * 1000);
  return { cwd, env, timeoutMs };
}
