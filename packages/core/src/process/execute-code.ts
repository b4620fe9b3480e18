import type { AgentClient } from "../agent/agent-client.ts";
import { uploadFile } from "../agent/upload.ts";
import { SandboxError } from "../sandbox-error.ts";
import { type ExecOptions, type ExecResult, exec } from "./exec.ts";

/** Runs source code of any size: it travels as a file, which the agent removes when the code has ended. */
export async function executeCode(
  client: AgentClient,
  source: { readonly language: string | undefined; readonly code: string },
  options: ExecOptions = {},
): Promise<ExecResult> {
  const language = knownLanguage(client, source.language);
  const path = `/tmp/code-${client.randomUuid()}`;
  const file = { path, mode: 0o600, owner: options.user };
  await uploadFile(client, file, source.code, { signal: options.signal });
  try {
    return await exec(client, { code: { language, path, ephemeral: true } }, options);
  } catch (thrown) {
    if (!client.isClosed) client.begin("file.remove", { path, missing_ok: true });
    throw thrown;
  }
}

function knownLanguage(client: AgentClient, language: string | undefined): string {
  const { languages } = client.hello;
  if (language !== undefined && languages.includes(language)) return language;
  const present = languages.length === 0 ? "none" : languages.join(", ");
  throw new SandboxError("invalid_argument", {
    reason: "unknown_language",
    message:
      language === undefined
        ? `no language was given, and ${client.label} has no primary one`
        : `${client.label} has no interpreter for ${JSON.stringify(language)}`,
    hint: `languages in this sandbox: ${present}`,
    details: { language, languages },
  });
}
