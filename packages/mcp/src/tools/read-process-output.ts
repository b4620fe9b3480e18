import { z } from "zod";
import { readOutput } from "../output/read-output.ts";
import { processIdInput, sandboxIdInput, sandboxIdOutput } from "../tool/fields.ts";
import { findProcess, processState } from "../tool/process-row.ts";
import { defineTool } from "../tool/tool.ts";

const MAX_WAIT_SECONDS = 600;

export const readProcessOutput = defineTool({
  name: "read_process_output",
  title: "Read a process's output",
  description:
    "Reads what a process wrote, standard output and standard error in the order in which they came, from an offset. next_offset is where the next call goes on. Can wait for new output or for its end. Also reads what run_command left out.",
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  input: z.object({
    sandbox_id: sandboxIdInput,
    process_id: processIdInput,
    offset: z.int().min(0).optional().describe("The first byte to read; 0, the start, unless given."),
    wait_seconds: z
      .number()
      .min(0)
      .max(MAX_WAIT_SECONDS)
      .optional()
      .describe("Waits at most so long when there is nothing to read yet; 0 unless given."),
    wait_for: z
      .enum(["output", "exit"])
      .optional()
      .describe("What wait_seconds waits for: any new output, the default, or the end of the process."),
  }),
  output: z.object({
    sandbox_id: sandboxIdOutput,
    process_id: z.string(),
    output: z.string(),
    offset: z.int().describe("Of the first byte of output; later than asked for where older output was dropped."),
    next_offset: z.int(),
    has_more: z.boolean().describe("There is more to read now."),
    is_running: z.boolean(),
    exit_code: z.int().nullable(),
    signal: z.string().nullable(),
  }),
  async run({ sandbox_id, process_id, offset = 0, wait_seconds = 0, wait_for = "output" }, call) {
    const sandbox = await call.session.sandbox(sandbox_id, call.signal);
    const waitMs = wait_seconds * 1000;
    const read = await readOutput(sandbox, process_id, { offset, waitMs, waitFor: wait_for, call });
    const after = await findProcess(sandbox, process_id, call.signal);
    const hasMore = read.nextOffset < after.endOffset;
    const dropped = read.offset > offset ? `[${read.offset - offset} bytes before this were dropped]\n` : "";
    const more = hasMore ? `${after.endOffset - read.nextOffset} more bytes are there. ` : "";
    const state = `[process ${processState(after)}; ${more}next offset ${read.nextOffset}]`;
    return {
      text: `${dropped}${read.text}${read.text === "" || read.text.endsWith("\n") ? "" : "\n"}${state}`,
      structured: {
        sandbox_id: sandbox.id,
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
