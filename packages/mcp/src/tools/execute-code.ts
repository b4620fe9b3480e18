import { languages } from "@sandpiper/sdk";
import { z } from "zod";
import { commandAnswer, commandFields } from "../output/command-fields.ts";
import { runToEnd } from "../output/run-to-end.ts";
import { commandInput, optionsOf } from "../tool/command-input.ts";
import { languageInput, sandboxIdInput } from "../tool/fields.ts";
import { defineTool } from "../tool/tool.ts";

const DEFAULT_LANGUAGE = "python";
const MAX_CODE_CHARS = 4 * 1024 * 1024;

export const executeCode = defineTool({
  name: "execute_code",
  title: "Execute code",
  description:
    "Runs source code in a sandbox, in a new interpreter, and waits until it ends. Returns the same fields as run_command. Files that the code writes persist; its variables do not.",
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  input: z.object({
    sandbox_id: sandboxIdInput,
    code: z.string().min(1).max(MAX_CODE_CHARS).describe("The source code, of at most 4 MiB."),
    language: languageInput.describe(
      `One of ${languages.join(", ")}. The default is the sandbox's language, or python.`,
    ),
    ...commandInput,
  }),
  output: z.object(commandFields),
  async run({ sandbox_id, code, language, ...input }, call) {
    const sandbox = await call.session.sandbox(sandbox_id, call.signal);
    const source = { code, language: language ?? sandbox.info.language ?? DEFAULT_LANGUAGE };
    return commandAnswer(await runToEnd(sandbox, source, { options: optionsOf(input, call.session), call }));
  },
});
