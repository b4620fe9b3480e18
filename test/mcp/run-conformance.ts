import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const program = createRequire(import.meta.url).resolve("@modelcontextprotocol/conformance/dist/index.js");
const LIMIT_MS = 80_000;

interface Check {
  readonly id: string;
  readonly status: "SUCCESS" | "FAILURE" | "WARNING" | "INFO" | "SKIPPED";
  readonly errorMessage?: string;
}

/** The checks of the conformance package by scenario. */
export type Findings = ReadonlyMap<string, readonly Check[]>;

/** Runs one scenario of the official package against a server, or all. */
export async function runConformance(url: string, scenario?: string): Promise<Findings> {
  const directory = await mkdtemp(join(tmpdir(), "sandpiper-conformance-"));
  const which = scenario === undefined ? ["--suite", "all"] : ["--scenario", scenario];
  try {
    // The files hold all results, so the exit code does not matter.
    await run(["server", "--url", url, ...which, "-o", directory]).catch(() => {});
    const findings = new Map<string, readonly Check[]>();
    for (const name of await readdir(directory)) {
      const checks = JSON.parse(await readFile(join(directory, name, "checks.json"), "utf8"));
      findings.set(scenarioOf(name), checks);
    }
    return findings;
  } finally {
    await rm(directory, { recursive: true });
  }
}

/** The names of the package's scenarios for servers. */
export async function conformanceScenarios(): Promise<string[]> {
  const listed = await run(["list", "--server"]);
  return [...listed.matchAll(/^ +- (\S+)/gm)].map(([, name]) => name as string);
}

/** The failed checks of a scenario. */
export function failuresOf(checks: readonly Check[] | undefined): readonly string[] {
  if (checks === undefined) return ["the scenario did not run"];
  return checks.filter(({ status }) => status === "FAILURE").map(({ id, errorMessage }) => `${id}: ${errorMessage}`);
}

async function run(args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [program, ...args], {
    timeout: LIMIT_MS,
    maxBuffer: 64 * 1024 * 1024,
  });
  return stdout;
}

/** The package names its directories after the scenario and the time. */
function scenarioOf(directory: string): string {
  return directory.replace(/^server-/, "").replace(/-\d{4}-\d{2}-\d{2}T.*$/, "");
}
