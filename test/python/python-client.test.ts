import { spawn } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { errorReasons } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { pythonEnv, pythonPath } from "../../scripts/setup/python.mjs";

const directory = join(import.meta.dirname, "../../clients/python");
/** Each file starts nodes of its own. */
const FILE_TIMEOUT_MS = 300_000;
const files = globSync("tests/test_*.py", { cwd: directory }).sort();
if (files.length === 0) throw new Error(`no tests in ${directory}`);

/** What a Python module prints; a failure is the error's message. */
async function runModule(signal: AbortSignal, ...args: readonly string[]): Promise<string> {
  const child = spawn(pythonPath(), ["-m", ...args], {
    cwd: directory,
    signal,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...pythonEnv(), PYTHONDONTWRITEBYTECODE: "1" },
  });
  const closed = new Promise((resolve, reject) => child.once("close", resolve).once("error", reject));
  const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr)]);
  if ((await closed) !== 0) throw new Error(`${args.join(" ")} failed:\n${output}${errors}`);
  return output;
}

describe("the Python client", () => {
  it("is typed strictly", { timeout: FILE_TIMEOUT_MS }, async ({ signal }) => {
    expect(await runModule(signal, "mypy", "--cache-dir=/dev/null")).toContain("no issues found");
  });

  it("retries only for reasons that the error table calls unavailable", () => {
    const source = readFileSync(join(directory, "src/sandpiper/retry.py"), "utf8");
    const reasons = [...source.matchAll(/^ +"([a-z_]+)",$/gm)].map(([, reason]) => reason as keyof typeof errorReasons);
    expect(reasons.length).toBeGreaterThan(5);
    expect(reasons.filter((reason) => errorReasons[reason]?.code !== "unavailable")).toEqual([]);
  });

  it.for(files)("passes %s", { timeout: FILE_TIMEOUT_MS }, async (file, { signal }) => {
    const output = await runModule(signal, "pytest", "--quiet", file);
    expect(output).toMatch(/\d+ passed in/);
    expect(output).not.toMatch(/skipped|xfailed/);
  });
});
