import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { SandboxError } from "@sandpiper/core";

/** The directory of everything that must outlive a host program. */
export function stateDirectory(environment: NodeJS.ProcessEnv = process.env): string {
  const configured = environment["SANDPIPER_HOME"];
  if (configured === undefined || configured === "") return join(homedir(), ".sandpiper");
  if (!isAbsolute(configured)) {
    throw new SandboxError("relative_state_directory", {
      message: `SANDPIPER_HOME is ${JSON.stringify(configured)}, which is not an absolute path`,
    });
  }
  return configured;
}
