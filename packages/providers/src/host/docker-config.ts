import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { SandboxError } from "@sandpiper/core";

/** The fields of the Docker client's config.json that Sandpiper reads. */
export interface DockerConfig {
  readonly currentContext?: string;
  readonly auths?: Readonly<Record<string, StoredCredential>>;
  /** Credential helpers by registry. */
  readonly credHelpers?: Readonly<Record<string, string>>;
  /** The credential helper of all other registries. */
  readonly credsStore?: string;
}

export interface StoredCredential {
  /** `name:password` in base64. */
  readonly auth?: string;
  readonly identitytoken?: string;
}

/** Returns an empty object if the file does not exist. */
export async function readDockerConfig(directory: string): Promise<DockerConfig> {
  const path = join(directory, "config.json");
  try {
    return JSON.parse(await readFile(path, "utf8"));
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return {};
    throw new SandboxError("docker_config", {
      message: `cannot read ${path}: ${cause instanceof Error ? cause.message : String(cause)}`,
      hint: "correct the file, or move it away",
      cause,
    });
  }
}
