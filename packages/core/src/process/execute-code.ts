import { type ExecOptions, type ExecResult, SandboxError } from "@sandpiper/protocol";
import type { AgentClient } from "../agent/agent-client.ts";
import { uploadFile } from "../agent/upload.ts";
import { exec } from "./exec.ts";

/** Runs source code of any size: it is sent as a file, which the agent removes when the code has ended. */
export async function executeCode(
  client: AgentClient,
  { language, code }: { readonly language: string | undefined; readonly code: string },
  options: ExecOptions = {},
): Promise<ExecResult> {
  if (language === undefined) throw unknownLanguage(client, language);
  const path = `/tmp/code-${client.randomUuid()}`;
  await uploadFile(client, { path, mode: 0o600, owner: options.user }, code, { signal: options.signal });
  try {
    return await exec(client, { code: { language, path, ephemeral: true } }, options);
  } catch (thrown) {
    if (!client.isClosed) client.begin("file.remove", { path, missing_ok: true });
    throw orUnknownLanguage(client, language, thrown);
  }
}

/** Adds the sandbox's name and its languages to the agent's error. */
export function orUnknownLanguage(client: AgentClient, language: string, thrown: unknown): unknown {
  const isUnknown = thrown instanceof SandboxError && thrown.reason === "unknown_language";
  return isUnknown ? unknownLanguage(client, language, thrown) : thrown;
}

function unknownLanguage(client: AgentClient, language: string | undefined, cause?: SandboxError): SandboxError {
  const { languages } = client.hello;
  return new SandboxError("unknown_language", {
    message:
      language === undefined
        ? `no language was given, and ${client.label} has no primary one`
        : `${client.label} has no interpreter for ${JSON.stringify(language)}`,
    hint: `languages in this sandbox: ${languages.length === 0 ? "none" : languages.join(", ")}`,
    details: { language, languages },
    cause,
  });
}
