import {
  type ExecOptions,
  type ExecResult,
  findLanguage,
  programsOf,
  SandboxError,
  type SourceCode,
} from "@sandpiper/protocol";
import type { AgentClient } from "../agent/agent-client.ts";
import { uploadFile } from "../agent/upload.ts";
import type { SpawnTarget } from "./command.ts";
import { exec } from "./exec.ts";

/** Turns TypeScript into JavaScript. Code that is not TypeScript becomes a program that reports the error. */
export type StripTypes = (code: string, options: { readonly signal?: AbortSignal | undefined }) => Promise<string>;

interface RunSourceOptions extends Pick<ExecOptions, "user" | "signal"> {
  /** Without it the sandbox does not run TypeScript. */
  readonly stripTypes: StripTypes | undefined;
}

/** Runs source code to its end. */
export async function executeCode(
  client: AgentClient,
  source: SourceCode,
  { stripTypes, ...options }: ExecOptions & RunSourceOptions,
): Promise<ExecResult> {
  const { user, signal } = options;
  return runSource(client, source, { user, signal, stripTypes, run: (target) => exec(client, target, options) });
}

/**
 * Sends source code of any size as a file, which the agent removes when the code has ended, and runs it. The file leaves
 * standard input to the code.
 */
export async function runSource<T>(
  client: AgentClient,
  source: SourceCode,
  { user, signal, stripTypes, run }: RunSourceOptions & { readonly run: (target: SpawnTarget) => Promise<T> },
): Promise<T> {
  const { language, code } = await runnableSource(client, source, { signal, stripTypes });
  const path = `/tmp/code-${client.randomUuid()}`;
  await uploadFile(client, { path, mode: 0o600, owner: user }, code, { signal });
  try {
    return await run({ code: { language, path, ephemeral: true } });
  } catch (thrown) {
    if (!client.isClosed) client.begin("file.remove", { path, missing_ok: true });
    throw SandboxError.is(thrown, "unknown_language")
      ? cannotRun(client, source.language ?? language, { stripTypes, cause: thrown })
      : thrown;
  }
}

/** The languages that a sandbox runs: those with an interpreter, and TypeScript if its types can be removed. */
export function runnableLanguages(
  { hello }: Pick<AgentClient, "hello">,
  stripTypes: StripTypes | undefined,
): readonly string[] {
  const canStrip = stripTypes !== undefined && hello.languages.includes("javascript");
  return canStrip ? [...hello.languages, "typescript"] : hello.languages;
}

async function runnableSource(
  client: AgentClient,
  { language, code }: SourceCode,
  { signal, stripTypes }: Pick<RunSourceOptions, "signal" | "stripTypes">,
): Promise<{ readonly language: string; readonly code: string }> {
  if (language === undefined) throw noLanguage(client, stripTypes);
  const name = findLanguage(language) ?? language;
  if (name !== "typescript") return { language: name, code };
  if (stripTypes === undefined) throw cannotRun(client, language, { stripTypes });
  return { language: "javascript", code: await stripTypes(code, { signal }) };
}

function noLanguage(client: AgentClient, stripTypes: StripTypes | undefined): SandboxError {
  const languages = runnableLanguages(client, stripTypes);
  return new SandboxError("unknown_language", {
    message: `no language was given, and ${client.label} has no default language`,
    hint: `languages in this sandbox: ${listOf(languages)}`,
    details: { languages },
  });
}

/** Distinguishes a language that no sandbox runs from one whose interpreter this sandbox lacks. */
function cannotRun(
  client: AgentClient,
  language: string,
  { stripTypes, cause }: { readonly stripTypes: StripTypes | undefined; readonly cause?: SandboxError },
): SandboxError {
  const languages = runnableLanguages(client, stripTypes);
  const name = findLanguage(language);
  if (name === undefined || (name === "typescript" && stripTypes === undefined)) {
    return new SandboxError("unknown_language", {
      message: `${JSON.stringify(language)} is not a language that ${client.label} runs`,
      hint: `languages in this sandbox: ${listOf(languages)}`,
      details: { language, languages },
      cause,
    });
  }
  const programs = programsOf(name).join(" or ");
  return new SandboxError("no_interpreter", {
    message: `${client.label} cannot run ${name}: it has no ${programs}`,
    hint: `use an image that has ${programs}, or one of these languages: ${listOf(languages)}`,
    details: { language, languages },
    cause,
  });
}

function listOf(languages: readonly string[]): string {
  return languages.length === 0 ? "none" : languages.join(", ");
}
