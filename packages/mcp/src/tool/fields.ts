import { z } from "zod";

/** Parameters and answers that several tools share, so that they are the same in each. */
export const sandboxIdInput = z
  .string()
  .min(1)
  .optional()
  .describe("Which sandbox. Leave it out for the session's default sandbox, which is made on first use.");

export const sandboxIdOutput = z.string().describe("The sandbox that was used.");

export const processIdInput = z
  .string()
  .min(1)
  .describe("Which process: the process_id that start_process, run_command or list_processes told.");

/** A file that is read in parts. */
export const filePartInput = {
  path: z.string().min(1).describe("Relative paths start at the user's home directory."),
  offset: z.int().min(0).optional().describe("The first byte to read; 0 unless given."),
  length: z.int().min(1).optional().describe("At most so many bytes."),
};

export const filePartOutput = {
  size_bytes: z.int().describe("Of the whole file."),
  next_offset: z.int().nullable().describe("Where the rest begins; null at the end of the file."),
};

export const modeInput = z
  .string()
  .regex(/^[0-7]{3,4}$/)
  .optional()
  .describe('Permissions in octal, such as "755"; a file that is there keeps its own unless given.');

export function modeOf(mode: string | undefined): number | undefined {
  return mode === undefined ? undefined : Number.parseInt(mode, 8);
}
