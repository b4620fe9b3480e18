import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

const repo = join(import.meta.dirname, "../..");
/** Shorter than a test's time limit, so that a program that does not exit is killed. */
const LIMIT_MS = 25_000;

export const readDocument = (path: string) => readFileSync(join(repo, path), "utf8");

/** The fenced blocks of that kind. */
export function blocksOf(document: string, kind: string): string[] {
  const fence = new RegExp(`^\`\`\`${kind}\n([\\s\\S]*?)^\`\`\``, "gm");
  return [...document.matchAll(fence)].map(([, text = ""]) => text);
}

/** The output that the comments of a program promise. */
export function commentsOf(program: string): string[] {
  return [...program.matchAll(/console\.log\(.*; \/\/ (.*)$/gm)].map(([, comment = ""]) => comment);
}

/** A pattern of a line; an ellipsis stands for text that differs between runs. */
export function patternOf(line: string): string {
  return line.split("…").map(RegExp.escape).join(".*");
}

/** Runs a program to its end and returns its output. */
export async function runProgram(program: string, env: NodeJS.ProcessEnv): Promise<string> {
  const argv = ["--input-type=module-typescript", "--eval", program];
  const options = { cwd: repo, env: { ...process.env, ...env }, timeout: LIMIT_MS };
  return (await promisify(execFile)(process.execPath, argv, options)).stdout;
}
