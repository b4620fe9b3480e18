import { isProgram } from "./find-program.ts";
import { runProgram } from "./run-program.ts";

/** The version in the output of `--version`; undefined for a missing, broken or other program. */
export async function programVersion(
  path: string,
  pattern: RegExp,
  env: Readonly<Record<string, string>> = {},
): Promise<string | undefined> {
  if (!isProgram(path)) return undefined;
  const { exitCode, stdout } = await runProgram([path, "--version"], { env, timeoutMs: 10_000 });
  return exitCode === 0 ? pattern.exec(stdout)?.[1] : undefined;
}

/** Compares the first two numbers of versions. */
export function isAtLeast(version: string, oldest: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [oldestMajor = 0, oldestMinor = 0] = oldest.split(".").map(Number);
  return major > oldestMajor || (major === oldestMajor && minor >= oldestMinor);
}
