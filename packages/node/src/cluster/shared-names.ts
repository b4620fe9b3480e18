import { createHash } from "node:crypto";
import { type Clock, type ObjectStore, SandboxError } from "@sandpiper/core";
import { type SandboxId, sandboxIdSchema } from "@sandpiper/protocol";
import { z } from "zod";
import { type DocumentVersion, SharedDocument } from "./shared-document.ts";

/** A new entry counts although its sandbox is not in the store yet: a creation takes the name first. */
const CREATION_MS = 30_000;

const entrySchema = z.object({ sandbox: sandboxIdSchema, takenAt: z.iso.datetime() });
type Entry = z.infer<typeof entrySchema>;

export interface SharedNamesOptions {
  readonly store: ObjectStore;
  readonly clock: Clock;
  /** Whether the sandbox exists on any node or at rest, and has this name. */
  readonly isNamed: (id: SandboxId, name: string) => Promise<boolean>;
}

export interface NamedSandbox {
  readonly tenant: string;
  readonly name: string;
  readonly id: SandboxId;
}

/** The names of sandboxes across the nodes of a cluster: a name identifies at most one sandbox of a tenant. */
export class SharedNames {
  readonly #options: SharedNamesOptions;

  constructor(options: SharedNamesOptions) {
    this.#options = options;
  }

  /** Throws `already_exists` / `name_in_use`. */
  async take({ tenant, name, id }: NamedSandbox): Promise<void> {
    const document = this.#document(tenant, name);
    const entry = { sandbox: id, takenAt: this.#options.clock.now().toISOString() };
    for (let isTaken = false; !isTaken; ) {
      const seen = await document.read();
      await this.#requireUnused(seen, { name, id });
      await document.change((current) => {
        // Otherwise another node changed the entry after it was read.
        isTaken = current?.sandbox === seen?.content.sandbox;
        return isTaken ? entry : undefined;
      });
    }
  }

  /** Does nothing if another sandbox has the name. */
  async release({ tenant, name, id }: NamedSandbox): Promise<void> {
    const { store } = this.#options;
    const document = this.#document(tenant, name);
    for (let isReleased = false; !isReleased; ) {
      const found = await document.read();
      // A rotation of the secret changes the tag only.
      isReleased =
        found?.content.sandbox !== id || (await store.delete(objectKey(tenant, name), { ifMatch: found.tag }));
    }
  }

  async #requireUnused(
    found: DocumentVersion<Entry> | undefined,
    { name, id }: Pick<NamedSandbox, "name" | "id">,
  ): Promise<void> {
    if (found === undefined || found.content.sandbox === id) return;
    const { sandbox, takenAt } = found.content;
    const ageMs = this.#options.clock.now().getTime() - Date.parse(takenAt);
    if (ageMs < CREATION_MS || (await this.#options.isNamed(sandbox, name))) throw nameInUse(name, sandbox);
  }

  #document(tenant: string, name: string): SharedDocument<Entry> {
    const { store, clock } = this.#options;
    return new SharedDocument({ store, clock, key: objectKey(tenant, name), schema: entrySchema });
  }
}

export function nameInUse(name: string, sandbox: SandboxId): SandboxError {
  return new SandboxError("name_in_use", {
    message: `the name ${JSON.stringify(name)} is in use by sandbox ${sandbox}`,
    details: { name, sandbox },
  });
}

/** A hash, because names and tenants can contain any character. */
function objectKey(tenant: string, name: string): string {
  const hash = createHash("sha256")
    .update(JSON.stringify([tenant, name]))
    .digest("hex");
  return `names/${hash}.json`;
}
