import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Check } from "./check.ts";

const run = promisify(execFile);
const TIME_LIMIT_MS = 10_000;

const tools = [
  {
    name: "go",
    argv: ["version"],
    use: "builds gVisor",
    hint: "If set-up asks for Go, install it from https://go.dev/dl.",
  },
  {
    name: "cargo",
    argv: ["--version"],
    use: "builds the agent",
    hint: "If set-up asks for cargo, install it from https://rustup.rs.",
  },
];

/** Checks for the tools that build Sandpiper. Running it does not need them. */
export function checkTools(): Promise<Check[]> {
  return Promise.all(
    tools.map(async ({ name, argv, use, hint }): Promise<Check> => {
      try {
        const { stdout } = await run(name, argv, { timeout: TIME_LIMIT_MS });
        return { name, status: "ok", detail: stdout.trim() };
      } catch {
        return { name, status: "warning", detail: `not found; ${use} if set-up has not done so yet`, hint };
      }
    }),
  );
}
