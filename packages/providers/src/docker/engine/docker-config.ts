import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { SandboxError } from "@sandpiper/core";

/** What is used of the file in which Docker's client keeps its settings. */
export interface DockerConfig {
  readonly currentContext?: string;
  readonly auths?: Readonly<Record<string, StoredCredential>>;
  /** Programs that keep credentials, by registry. */
  readonly credHelpers?: Readonly<Record<string, string>>;
  /** The program that keeps those of all other registries. */
  readonly credsStore?: string;
}

export interface StoredCredential {
  /** `name:password` in base64. */
  readonly auth?: string;
  readonly identitytoken?: string;
}

/** One that is not there says nothing. */
export async function readDockerConfig(directory: string): Promise<DockerConfig> {
  const path = join(directory, "config.json");
  try {
    return JSON.parse(await readFile(path, "utf8"));
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return {};
    throw new SandboxError("failed_precondition", {
      reason: "docker_config",
      message: `${path} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`,
      hint: "mend the file, or move it away",
      cause,
    });
  }
}
