import { SandboxError } from "@sandpiper/sdk";
import { z } from "zod";
import { processIdInput, textInput } from "../tool/fields.ts";
import { findProcess } from "../tool/process-row.ts";
import { defineSandboxTool } from "../tool/tool.ts";
import { within } from "../tool/within.ts";

/** A program that reads its input needs far less time. */
const PATIENCE_MS = 10_000;

export const writeProcessInput = defineSandboxTool({
  name: "write_process_input",
  title: "Write to a process",
  description:
    "Sends text to the standard input of a process that start_process started. Most programs read lines: end the text with a newline.",
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: false },
  input: {
    process_id: processIdInput,
    input: textInput.describe("The text, sent unchanged."),
    close: z.boolean().optional().describe("If true, the input ends after this text."),
  },
  output: {
    process_id: z.string(),
    bytes: z.int(),
    output_offset: z.int().describe("The offset at which read_process_output finds later output."),
  },
  async run({ process_id, input, close = false }, { sandbox, signal }) {
    const { endOffset, isRunning } = await findProcess(sandbox, process_id, signal);
    if (!isRunning) throw hasEnded(process_id);
    const process = await sandbox.attach(process_id, { offset: endOffset, signal });
    const bytes = new TextEncoder().encode(input);
    try {
      const written = process.write(bytes).then(() => (close ? process.closeStdin() : undefined));
      if (!(await within(PATIENCE_MS, signal, written))) throw doesNotRead(process_id);
    } finally {
      process.detach();
    }
    return {
      text: `Wrote ${bytes.length} bytes to process ${process_id}. Read its answer from offset ${endOffset}.`,
      structured: { process_id, bytes: bytes.length, output_offset: endOffset },
    };
  },
});

function hasEnded(process: string): SandboxError {
  return new SandboxError("process_ended", { message: `nothing was written: process ${process} has ended` });
}

function doesNotRead(process: string): SandboxError {
  return new SandboxError("input_not_read", {
    message: `process ${process} does not read its input; part of it may have been written`,
  });
}
