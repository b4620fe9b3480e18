import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, expect } from "vitest";
import { findLeftovers } from "./leftovers.ts";
import { type CliOptions, type CliResult, runCli, startCli } from "./run-cli.ts";
import { useScratchDirectory } from "./scratch-directory.ts";

/** A node that `sandpiper up` started, and the environment in which command lines find it. */
export interface NodeProcess {
  readonly home: string;
  readonly url: string;
  readonly env: NodeJS.ProcessEnv;
  run(argv: readonly string[], options?: CliOptions): Promise<CliResult>;
}

/** One node for a test file, on a free port; it and its sandboxes end with the file. */
export function useNode(): NodeProcess {
  const scratch = useScratchDirectory();
  let child: ChildProcess;
  let url = "";
  const node: NodeProcess = {
    get home() {
      return join(scratch.path, "home");
    },
    get url() {
      return url;
    },
    get env() {
      return { SANDPIPER_HOME: this.home, SANDPIPER_PORT: new URL(url).port };
    },
    run(argv, options = {}) {
      return runCli(argv, { ...options, env: { ...this.env, ...options.env } });
    },
  };
  beforeAll(async () => {
    child = startCli(["up", "--port", "0"], {
      env: { SANDPIPER_HOME: node.home },
      stdio: ["ignore", "pipe", "inherit"],
    });
    url = await readyUrl(child);
  });
  afterAll(async () => {
    await node.run(["rm", "--all"]);
    child.kill("SIGTERM");
    if (child.exitCode === null) await once(child, "exit");
    expect([child.exitCode, findLeftovers(node.home)]).toEqual([0, []]);
  });
  return node;
}

export async function readyUrl(child: ChildProcess): Promise<string> {
  for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
    const { msg, url } = JSON.parse(line) as { msg?: string; url?: string };
    if (msg === "ready" && url !== undefined) {
      child.stdout?.resume();
      return url;
    }
  }
  throw new Error("the node ended before it was ready");
}
