import { z } from "zod";
import { commandAnswer, commandFields } from "../output/command-fields.ts";
import { runToEnd } from "../output/run-to-end.ts";
import { commandInput, optionsOf } from "../tool/command-input.ts";
import { commandText, sandboxIdInput, textInput } from "../tool/fields.ts";
import { defineTool } from "../tool/tool.ts";

export const runCommand = defineTool({
  name: "run_command",
  title: "Run a command",
  description:
    "Runs a shell command in a sandbox and waits until it ends. Returns the exit code, standard output and standard error; a non-zero exit code is a result, not an error. Files persist until the next call; the working directory and shell variables do not. Long output is cut in the middle.",
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  input: z.object({
    sandbox_id: sandboxIdInput,
    command: commandText.describe("Run by /bin/sh -c."),
    ...commandInput,
    stdin: textInput.optional().describe("Sent to standard input, which then ends."),
  }),
  output: z.object(commandFields),
  async run({ sandbox_id, command, stdin, ...input }, call) {
    const sandbox = await call.session.sandbox(sandbox_id, call.signal);
    const options = { ...optionsOf(input, call.session), stdin };
    return commandAnswer(await runToEnd(sandbox, command, { options, call }));
  },
});
