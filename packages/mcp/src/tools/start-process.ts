import { z } from "zod";
import { commandText, cwdInput, envInput } from "../tool/fields.ts";
import { defineSandboxTool } from "../tool/tool.ts";

export const startProcess = defineSandboxTool({
  name: "start_process",
  title: "Start a background process",
  description:
    "Starts a shell command, or a shell, in a sandbox and returns immediately: for servers, watchers, long jobs and interactive programs. Read its output with read_process_output, send input with write_process_input, end it with kill_process.",
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  input: {
    command: commandText
      .optional()
      .describe("Run by /bin/sh -c. Omit it to start the sandbox's shell, which reads commands from its input."),
    cwd: cwdInput,
    env: envInput.describe("Environment variables of this process."),
  },
  output: { process_id: z.string(), pid: z.int() },
  async run({ command, cwd, env }, { sandbox, signal }) {
    const options = { cwd, env, stdin: true, signal };
    const process = await (command === undefined ? sandbox.shell(options) : sandbox.start(command, options));
    process.detach();
    return {
      text: `Process ${process.id} is running. Read its output with read_process_output.`,
      structured: { process_id: process.id, pid: process.pid },
    };
  },
});
