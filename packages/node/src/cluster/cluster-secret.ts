import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { SandboxError } from "@sandpiper/core";
import { writePrivateFile } from "../auth/private-file.ts";

const SECRET_BYTES = 32;
const MIN_LENGTH = 16;

export interface ClusterSecretOptions {
  readonly home: string;
  /** Takes precedence over the file. */
  readonly configured: string | null;
}

/** The cluster's secret, from the configuration or from `cluster-secret` in the node's home. */
export class ClusterSecret {
  readonly path: string;
  readonly #configured: string | null;

  constructor({ home, configured }: ClusterSecretOptions) {
    this.path = join(home, "cluster-secret");
    this.#configured = configured;
  }

  find(): string | undefined {
    if (this.#configured !== null) return this.#configured;
    if (!existsSync(this.path)) return undefined;
    const secret = readFileSync(this.path, "utf8").trim();
    if (secret.length >= MIN_LENGTH) return secret;
    throw new SandboxError("secret_corrupt", {
      message: `the cluster's secret ${this.path} has ${secret.length} characters, but needs at least ${MIN_LENGTH}; the file was not changed`,
      hint: "copy it from another node of the cluster, or set clusterSecret",
      details: { path: this.path },
    });
  }

  /** Creates the secret of a new cluster. It is written before use, because without it the cluster is lost. */
  make(): string {
    const secret = randomBytes(SECRET_BYTES).toString("base64url");
    writePrivateFile(this.path, `${secret}\n`);
    return secret;
  }

  /** Deletes the secret again if another node created the cluster at the same time. */
  forget(): void {
    rmSync(this.path, { force: true });
  }
}
