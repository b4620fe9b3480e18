import { realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { SandboxError } from "@sandpiper/core";
import { isProgram } from "./find-program.ts";

const buildDirectory = fileURLToPath(new URL("../../../../agent/target/release/", import.meta.url));

/** The program that runs inside every instance. */
export function findAgent(environment: NodeJS.ProcessEnv = process.env): string {
  return findBuilt("sandpiper-agent", "SANDPIPER_AGENT", environment);
}

/** The program that starts another one with a FIFO pair as its stdin and stdout. */
export function findLauncher(environment: NodeJS.ProcessEnv = process.env): string {
  return findBuilt("sandpiper-launch", "SANDPIPER_LAUNCH", environment);
}

/** The lease guard: the program that kills instances whose lease has expired. */
export function findGuard(environment: NodeJS.ProcessEnv = process.env): string {
  return findBuilt("sandpiper-guard", "SANDPIPER_GUARD", environment);
}

function findBuilt(name: string, variable: string, environment: NodeJS.ProcessEnv): string {
  const path = environment[variable] || `${buildDirectory}${name}`;
  // Resolves links once, because a link that is mounted into an instance would be broken there.
  if (isProgram(path)) return realpathSync(path);
  throw new SandboxError("agent_missing", {
    message: `${name} not found at ${path}`,
    hint: `build it with "npm run setup" in a clone of Sandpiper; the npm packages do not contain it, so outside the clone set ${variable} to its path`,
  });
}
