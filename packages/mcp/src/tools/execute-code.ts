import { SandboxError } from "@sandpiper/sdk";
import { z } from "zod";
import { commandAnswer, commandFields } from "../output/command-fields.ts";
import { runToEnd } from "../output/run-to-end.ts";
import { commandInput, optionsOf } from "../tool/command-input.ts";
import { sandboxIdInput } from "../tool/fields.ts";
import { defineTool } from "../tool/tool.ts";

const python = { program: "python3", suffix: ".py" };
const javascript = { program: "node", suffix: ".js" };
const bash = { program: "bash", suffix: ".sh" };
const sh = { program: "sh", suffix: ".sh" };
const languages = { python, python3: python, javascript, js: javascript, node: javascript, bash, sh };

export const executeCode = defineTool({
  name: "execute_code",
  title: "Execute code",
  description:
    "Runs source code in a sandbox, in a new interpreter, and waits until it ends. Returns the same fields as run_command. Files that the code writes persist; its variables do not.",
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  input: z.object({
    sandbox_id: sandboxIdInput,
    code: z.string().min(1).describe("The source code, of any length."),
    language: z
      .enum(Object.keys(languages) as (keyof typeof languages)[])
      .optional()
      .describe("The default is python."),
    ...commandInput,
  }),
  output: z.object(commandFields),
  async run({ sandbox_id, code, language = "python", ...input }, call) {
    const sandbox = await call.session.sandbox(sandbox_id, call.signal);
    const { program, suffix } = languages[language];
    const path = `/tmp/code-${crypto.randomUUID()}${suffix}`;
    await sandbox.files.write(path, code, { signal: call.signal });
    try {
      const options = optionsOf(input, call.session);
      return commandAnswer(await runToEnd(sandbox, [program, path], { options, call }));
    } catch (thrown) {
      throw isMissingProgram(thrown) ? noInterpreter(language, program, thrown) : thrown;
    } finally {
      // The sandbox may be gone, and its files with it.
      await sandbox.files.remove(path, { missingOk: true }).catch(() => {});
    }
  },
});

function isMissingProgram(thrown: unknown): boolean {
  return thrown instanceof SandboxError && thrown.reason === "no_such_program";
}

function noInterpreter(language: string, program: string, cause: unknown): SandboxError {
  return new SandboxError("no_interpreter", {
    message: `the sandbox has no ${program}, which runs ${language}`,
    hint: `use another language, or a sandbox whose image has ${program}`,
    cause,
  });
}
