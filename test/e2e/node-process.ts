import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, expect } from "vitest";
import { sharedDirectory } from "../../packages/providers/src/host/testing/shared.ts";
import { findLeftovers } from "./leftovers.ts";
import { type CliOptions, type CliResult, runCli, startCli } from "./run-cli.ts";

/** A node that `sandpiper up` started, and the environment in which command lines find it. */
export interface NodeProcess {
  readonly home: string;
  readonly url: string;
  readonly env: NodeJS.ProcessEnv;
  run(argv: readonly string[], options?: CliOptions): Promise<CliResult>;
}

/** One node for a test file, on a free port, with further options of `up`; it and its sandboxes end with the file. */
export async function useNode(...options: readonly string[]): Promise<NodeProcess> {
  const home = join(sharedDirectory("e2e"), "home");
  const child = startCli(["up", "--port", "0", ...options], {
    env: { SANDPIPER_HOME: home },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const url = await readyUrl(child);
  const env = { SANDPIPER_HOME: home, SANDPIPER_PORT: new URL(url).port };
  const run: NodeProcess["run"] = (argv, options = {}) => runCli(argv, { ...options, env: { ...env, ...options.env } });
  afterAll(async () => {
    await run(["rm", "--all"]);
    child.kill("SIGTERM");
    if (child.exitCode === null) await once(child, "exit");
    expect([child.exitCode, findLeftovers(home)]).toEqual([0, []]);
  });
  return { home, url, env, run };
}

async function readyUrl(child: ChildProcess): Promise<string> {
  for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
    const { msg, url } = JSON.parse(line) as { msg?: string; url?: string };
    if (msg === "ready" && url !== undefined) {
      child.stdout?.resume();
      return url;
    }
  }
  throw new Error("the node ended before it was ready");
}
