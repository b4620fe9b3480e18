import { z } from "zod";

/** Parameters and answers that several tools share. */
export const sandboxIdInput = z
  .string()
  .min(1)
  .optional()
  .describe("The sandbox. Omit it to use the session's default sandbox, which is created on first use.");

export const sandboxIdOutput = z.string().describe("The sandbox that was used.");

export const processIdInput = z
  .string()
  .min(1)
  .describe("The process_id that start_process, run_command or list_processes returned.");

/** A file that is read in parts. */
export const filePartInput = {
  path: z.string().min(1).describe("Relative paths start at the user's home directory."),
  offset: z.int().min(0).optional().describe("The first byte to read; the default is 0."),
  length: z.int().min(1).optional().describe("The maximum number of bytes."),
};

export const filePartEnd = {
  size_bytes: z.int().describe("The size of the whole file."),
  next_offset: z.int().nullable().describe("The start of the next part; null at the end of the file."),
};

export const modeInput = z
  .string()
  .regex(/^[0-7]{3,4}$/)
  .optional()
  .describe('Permissions in octal, such as "755"; an existing file keeps its own if omitted.');

export function modeOf(mode: string | undefined): number | undefined {
  return mode === undefined ? undefined : Number.parseInt(mode, 8);
}
