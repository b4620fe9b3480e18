import { z } from "zod";
import { readOutput } from "../output/read-output.ts";
import { processIdInput } from "../tool/fields.ts";
import { findProcess, processState } from "../tool/process-row.ts";
import { defineSandboxTool } from "../tool/tool.ts";

const MAX_WAIT_SECONDS = 600;

export const readProcessOutput = defineSandboxTool({
  name: "read_process_output",
  title: "Read a process's output",
  description:
    "Reads the output of a process from an offset: standard output and standard error in the order of arrival. Continue at next_offset. Can wait for new output or for the end of the process. Also reads output that run_command left out.",
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  input: {
    process_id: processIdInput,
    offset: z.int().min(0).optional().describe("The first byte to read; the default is 0, the start."),
    wait_seconds: z
      .number()
      .min(0)
      .max(MAX_WAIT_SECONDS)
      .optional()
      .describe("The longest time to wait for output; the default is 0."),
    wait_for: z
      .enum(["output", "exit"])
      .optional()
      .describe("What to wait for: any new output, the default, or the end of the process."),
  },
  output: {
    process_id: z.string(),
    output: z.string(),
    offset: z
      .int()
      .describe("The offset of the first byte of output; later than requested if older output was dropped."),
    next_offset: z.int(),
    has_more: z.boolean().describe("True if more output can be read now."),
    is_running: z.boolean(),
    exit_code: z.int().nullable(),
    signal: z.string().nullable(),
  },
  async run({ process_id, offset = 0, wait_seconds = 0, wait_for = "output" }, { sandbox, ...call }) {
    const waitMs = wait_seconds * 1000;
    const read = await readOutput(sandbox, process_id, { offset, waitMs, waitFor: wait_for, call });
    const after = await findProcess(sandbox, process_id, call.signal);
    const hasMore = read.nextOffset < after.endOffset;
    const dropped = read.offset > offset ? `[${read.offset - offset} bytes before this were dropped]\n` : "";
    const more = hasMore ? `${after.endOffset - read.nextOffset} more bytes available. ` : "";
    const state = `[process ${processState(after)}; ${more}next offset ${read.nextOffset}]`;
    return {
      text: `${dropped}${read.text}${read.text === "" || read.text.endsWith("\n") ? "" : "\n"}${state}`,
      structured: {
        process_id,
        output: read.text,
        offset: read.offset,
        next_offset: read.nextOffset,
        has_more: hasMore,
        is_running: after.isRunning,
        exit_code: after.exitCode,
        signal: after.signal,
      },
    };
  },
});
