import { readFile } from "node:fs/promises";
import type { Readable } from "node:stream";
import type { Program } from "@sandpiper/protocol";
import type { Arguments } from "../command/arguments.ts";
import { usageError } from "../command/usage-error.ts";
import { stdinOfJob } from "./stdin.ts";

/** What a command line runs, and its input; undefined for an empty one. */
export interface Job {
  readonly program: Program;
  readonly stdin: Readable | undefined;
}

/** The words are a command or, with --language, the place of source code: a file, or `-` for standard input. */
export async function readJob(arguments_: Arguments): Promise<Job> {
  const { words } = arguments_;
  const language = arguments_.get("language");
  if (language === undefined) return { program: words, stdin: stdinOfJob() };
  const [file, ...rest] = words;
  if (file === undefined || rest.length > 0) {
    const example = `--language ${language} script, or --language ${language} - to read standard input`;
    throw usageError(`--language takes one file with source code, not ${words.length} words`, `write ${example}`);
  }
  const isStdin = file === "-";
  const bytes = isStdin ? Buffer.concat(await process.stdin.toArray()) : await readSource(file);
  const program = { code: textOf(bytes, isStdin ? "standard input" : file), language };
  return { program, stdin: isStdin ? undefined : stdinOfJob() };
}

async function readSource(file: string): Promise<Uint8Array> {
  try {
    return await readFile(file);
  } catch (error) {
    const message = `cannot read source code from ${file}: ${error instanceof Error ? error.message : error}`;
    throw usageError(message, "give a file of this machine, or - for standard input");
  }
}

function textOf(bytes: Uint8Array, source: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw usageError(`the source code in ${source} is not UTF-8 text`, "convert it to UTF-8");
  }
}
