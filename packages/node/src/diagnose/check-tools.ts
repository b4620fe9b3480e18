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
    hint: "Install it from https://go.dev/dl if set-up asks for it.",
  },
  {
    name: "cargo",
    argv: ["--version"],
    use: "builds the agent",
    hint: "Install it from https://rustup.rs if set-up asks for it.",
  },
];

/** Needed to build Sandpiper, not to use it. */
export function checkTools(): Promise<Check[]> {
  return Promise.all(
    tools.map(async ({ name, argv, use, hint }): Promise<Check> => {
      try {
        const { stdout } = await run(name, argv, { timeout: TIME_LIMIT_MS });
        return { name, status: "ok", detail: stdout.trim() };
      } catch {
        return { name, status: "warning", detail: `not found; it ${use} when that was not done before`, hint };
      }
    }),
  );
}
