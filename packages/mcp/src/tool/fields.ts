import { z } from "zod";

/** As long as the node accepts. */
const MAX_ID_CHARS = 128;
const MAX_PATH_CHARS = 4096;
const MAX_VARIABLES = 1024;
const MAX_ENV_CHARS = 128 * 1024;
const MAX_COMMAND_CHARS = 2 * 1024 * 1024;
/** As large as the body of a request by default. */
const MAX_TEXT_CHARS = 16 * 1024 * 1024;

/** Parameters and answers that several tools share. */
export const sandboxIdInput = z
  .string()
  .min(1)
  .max(MAX_ID_CHARS)
  .optional()
  .describe("The sandbox. Omit it to use the session's default sandbox, which is created on first use.");

export const sandboxIdOutput = z.string().describe("The sandbox that was used.");

export const processIdInput = z
  .string()
  .min(1)
  .max(MAX_ID_CHARS)
  .describe("The process_id that start_process, run_command or list_processes returned.");

export const checkpointInput = z.string().min(1).max(MAX_ID_CHARS).optional();

export const languageInput = z.string().max(MAX_ID_CHARS).optional();

export const pathInput = z
  .string()
  .min(1)
  .max(MAX_PATH_CHARS)
  .describe("Relative paths start at the user's home directory.");

export const cwdInput = z
  .string()
  .min(1)
  .max(MAX_PATH_CHARS)
  .optional()
  .describe("The working directory; the default is the user's home directory.");

export const envInput = z
  .record(z.string().max(1024), z.string().max(MAX_ENV_CHARS))
  .refine((env) => Object.keys(env).length <= MAX_VARIABLES, { error: `more than ${MAX_VARIABLES} variables` })
  .meta({ maxProperties: MAX_VARIABLES })
  .optional();

export const commandText = z.string().min(1).max(MAX_COMMAND_CHARS);

/** The content of a file, or the input of a process. */
export const textInput = z.string().max(MAX_TEXT_CHARS);

/** A file that is read in parts. */
export const filePartInput = {
  path: pathInput,
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
