import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { writePrivateFile } from "../auth/private-file.ts";
import { type KeysDocument, keysDocumentSchema } from "./stored-keys.ts";

const rememberedSchema = z.object({ cluster: z.string(), document: keysDocumentSchema });

export interface RememberedKeysOptions {
  readonly home: string;
  readonly clusterId: string;
}

/** The newest version of the cluster's keys that this node has seen, in its home: a restart must not accept an older one. */
export class RememberedKeys {
  readonly #path: string;
  readonly #clusterId: string;

  constructor({ home, clusterId }: RememberedKeysOptions) {
    this.#path = join(home, "cluster-keys.json");
    this.#clusterId = clusterId;
  }

  /** Undefined for a node that is new to the cluster, and for a damaged file. */
  load(): KeysDocument | undefined {
    if (!existsSync(this.#path)) return undefined;
    try {
      const { cluster, document } = rememberedSchema.parse(JSON.parse(readFileSync(this.#path, "utf8")));
      return cluster === this.#clusterId ? document : undefined;
    } catch {
      return undefined;
    }
  }

  save(document: KeysDocument): void {
    writePrivateFile(this.#path, `${JSON.stringify({ cluster: this.#clusterId, document })}\n`);
  }
}
