import { type CommandOptions, type ExecOptions, type ExecResult, SandboxError } from "@sandpiper/protocol";
import type { AgentClient } from "../agent/agent-client.ts";
import { uploadFile } from "../agent/upload.ts";
import { type SpawnTarget, spawnOptions } from "./command.ts";
import { exec } from "./exec.ts";

interface SourceCode<Language = string> {
  readonly language: Language;
  readonly code: string;
}

export interface StartCodeOptions extends CommandOptions {
  /** Its id, chosen by the caller; random otherwise. */
  readonly id?: string | undefined;
}

export async function executeCode(
  client: AgentClient,
  { language, code }: SourceCode<string | undefined>,
  options: ExecOptions = {},
): Promise<ExecResult> {
  if (language === undefined) throw unknownLanguage(client, language);
  return runSource(client, { language, code }, options, (source) => exec(client, source, options));
}

/** Starts source code as a process. */
export async function startCode(
  client: AgentClient,
  source: SourceCode,
  options: StartCodeOptions = {},
): Promise<{ readonly id: string; readonly pid: number }> {
  const id = options.id ?? client.randomUuid();
  const { pid } = await runSource(client, source, options, (target) =>
    client.call("process.spawn", { process: id, ...target, ...spawnOptions(options) }),
  );
  return { id, pid };
}

/** Sends source code of any size as a file, which the agent removes when the code has ended. */
async function runSource<T>(
  client: AgentClient,
  { language, code }: SourceCode,
  { user, signal }: Pick<ExecOptions, "user" | "signal">,
  run: (source: SpawnTarget) => Promise<T>,
): Promise<T> {
  const path = `/tmp/code-${client.randomUuid()}`;
  await uploadFile(client, { path, mode: 0o600, owner: user }, code, { signal });
  try {
    return await run({ code: { language, path, ephemeral: true } });
  } catch (thrown) {
    if (!client.isClosed) client.begin("file.remove", { path, missing_ok: true });
    throw SandboxError.is(thrown, "unknown_language") ? unknownLanguage(client, language, thrown) : thrown;
  }
}

/** Adds the sandbox's name and its languages to the agent's error. */
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
