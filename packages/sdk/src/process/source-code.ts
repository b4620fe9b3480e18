import { type ExecOptions, MAX_CODE_BYTES, SandboxError, type SourceCode } from "@sandpiper/protocol";
import type { StartOptions } from "./open-process.ts";

interface LanguageOption {
  /** Such as python, javascript, typescript or bash; the default is the sandbox's language. */
  readonly language?: string | undefined;
}

export interface RunCodeOptions extends ExecOptions, LanguageOption {}

export interface StartCodeOptions extends StartOptions, LanguageOption {}

/** Refuses code that does not fit into a message: the node would close the connection of all streams. */
export function sourceCode(code: string, { language }: LanguageOption): SourceCode {
  const { length } = new TextEncoder().encode(code);
  if (length <= MAX_CODE_BYTES) return { code, language };
  throw new SandboxError("code_too_long", {
    message: `the source code has ${length} bytes, more than the ${MAX_CODE_BYTES} that one request can carry`,
    details: { limitBytes: MAX_CODE_BYTES },
  });
}
