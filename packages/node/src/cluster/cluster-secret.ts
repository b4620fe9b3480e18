import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { SandboxError } from "@sandpiper/core";
import { writePrivateFile } from "../auth/private-file.ts";

const SECRET_BYTES = 32;
const MIN_LENGTH = 16;

/** The first one signs. The others are accepted, too, while the secret is being replaced. */
export type ClusterSecrets = readonly [string, ...string[]];

export interface ClusterSecretOptions {
  readonly home: string;
  /** Takes precedence over the file. */
  readonly configured: string | null;
  /** Accepted besides the current secret. */
  readonly accepted?: readonly string[] | undefined;
}

/** The cluster's secrets, from the configuration or from `cluster-secret` in the node's home, one per line. */
export class ClusterSecret {
  readonly path: string;
  readonly #configured: string | null;
  readonly #accepted: readonly string[];

  constructor({ home, configured, accepted = [] }: ClusterSecretOptions) {
    this.path = join(home, "cluster-secret");
    this.#configured = configured;
    this.#accepted = accepted;
  }

  find(): ClusterSecrets | undefined {
    if (this.#configured !== null) return [this.#configured, ...this.#accepted];
    if (!existsSync(this.path)) return undefined;
    return [...parseClusterSecrets(readFileSync(this.path, "utf8"), this.path), ...this.#accepted];
  }

  /** Creates the secret of a new cluster. It is written before use, because without it the cluster is lost. */
  make(): ClusterSecrets {
    const secret = randomBytes(SECRET_BYTES).toString("base64url");
    writePrivateFile(this.path, `${secret}\n`);
    return [secret];
  }

  /** Deletes the secret again if another node created the cluster at the same time. */
  forget(): void {
    rmSync(this.path, { force: true });
  }
}

/** One per line; `path` is for the error. */
export function parseClusterSecrets(text: string, path: string): ClusterSecrets {
  const [current = "", ...others] = text.trim().split("\n");
  return [checked(current, path), ...others.map((line) => checked(line, path))];
}

function checked(line: string, path: string): string {
  const secret = line.trim();
  if (secret.length >= MIN_LENGTH) return secret;
  throw new SandboxError("secret_corrupt", {
    message: `a secret in ${path} has ${secret.length} characters, but needs at least ${MIN_LENGTH}; the file was not changed`,
    hint: "copy it from another node of the cluster, or set clusterSecret",
    details: { path },
  });
}
