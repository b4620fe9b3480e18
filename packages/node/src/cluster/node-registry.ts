import { type Clock, type ObjectStore, SandboxError } from "@sandpiper/core";
import type { NodeResource } from "@sandpiper/protocol";
import { z } from "zod";

const PREFIX = "nodes/";
/** A node that has been silent for so long is not listed any more. */
const FORGET_MS = 3_600_000;
/** Of a lease: one sign of life may be lost without anybody taking the node for dead. */
const BEATS_PER_LEASE = 3;

const entrySchema = z.object({
  id: z.uuid(),
  url: z.string(),
  version: z.string(),
  startedAt: z.iso.datetime(),
  seenAt: z.iso.datetime(),
  isDraining: z.boolean(),
  sandboxes: z.int(),
  /** Tells the run of a node apart from another that uses the same id. */
  run: z.string(),
});

type Entry = z.infer<typeof entrySchema>;

export interface NodeRegistryOptions {
  readonly store: ObjectStore;
  readonly node: { readonly id: string; readonly url: string; readonly version: string };
  readonly clock: Clock;
  readonly leaseMs: number;
  readonly maxSkewMs: number;
  /** What changes from one sign of life to the next. */
  readonly describe: () => { readonly isDraining: boolean; readonly sandboxes: number };
  /** Told about signs of life that could not be given, and about another node with the same id. */
  readonly onError: (error: SandboxError) => void;
  readonly randomUuid?: (() => string) | undefined;
}

/** Who is in the cluster: each node says in the store, again and again, that it lives and what it holds. */
export class NodeRegistry {
  readonly #options: NodeRegistryOptions;
  readonly #run: string;
  readonly #startedAt: string;
  #beating: Promise<void> = Promise.resolve();
  #wasWritten = false;
  #stop: (() => void) | undefined;

  constructor(options: NodeRegistryOptions) {
    this.#options = options;
    const { randomUuid = () => crypto.randomUUID() } = options;
    this.#run = randomUuid();
    this.#startedAt = options.clock.now().toISOString();
  }

  /** Resolves when the others can see this node. */
  async start(): Promise<void> {
    await this.#beat();
    this.#next();
  }

  /** Tells the others now what has changed, as at the beginning of a drain. */
  announce(): Promise<void> {
    this.#beating = this.#beating.catch(() => {}).then(() => this.#beat());
    return this.#beating;
  }

  /** Takes this node off the list. */
  async stop(): Promise<void> {
    this.#stop?.();
    this.#stop = undefined;
    await this.#beating.catch(() => {});
    const { store } = this.#options;
    const found = await store.get(this.#key);
    if (found !== undefined && parseEntry(found.bytes)?.run === this.#run) {
      await store.delete(this.#key, { ifMatch: found.tag });
    }
  }

  /** Those that live or lived until lately, by id. */
  async list(): Promise<readonly NodeResource[]> {
    const entries = await Array.fromAsync(this.#options.store.list(PREFIX), ({ key }) => this.#read(key));
    return entries
      .filter((entry) => entry !== undefined)
      .map((entry) => this.#resource(entry))
      .sort((one, other) => (one.id < other.id ? -1 : 1));
  }

  async isAlive(id: string): Promise<boolean> {
    const entry = await this.#read(`${PREFIX}${id}.json`);
    return entry !== undefined && this.#resource(entry).isAlive;
  }

  get #key(): string {
    return `${PREFIX}${this.#options.node.id}.json`;
  }

  #next(): void {
    const { clock, leaseMs, onError } = this.#options;
    this.#stop = clock.schedule(leaseMs / BEATS_PER_LEASE, () => {
      this.announce()
        .catch((thrown) => onError(SandboxError.from(thrown)))
        .finally(() => this.#stop !== undefined && this.#next());
    });
  }

  async #beat(): Promise<void> {
    const { store, node, clock, describe, onError } = this.#options;
    const before = await store.get(this.#key);
    const other = before && parseEntry(before.bytes);
    if (this.#wasWritten && other !== undefined && other.run !== this.#run) onError(idTaken(node.id, other.url));
    const seenAt = clock.now().toISOString();
    const entry: Entry = { ...node, ...describe(), startedAt: this.#startedAt, seenAt, run: this.#run };
    await store.put(this.#key, Buffer.from(JSON.stringify(entry)));
    this.#wasWritten = true;
  }

  async #read(key: string): Promise<Entry | undefined> {
    const { store, clock } = this.#options;
    const found = await store.get(key);
    const entry = found && parseEntry(found.bytes);
    if (found === undefined || entry === undefined) return undefined;
    if (clock.now().getTime() - Date.parse(entry.seenAt) < FORGET_MS) return entry;
    await store.delete(key, { ifMatch: found.tag });
    return undefined;
  }

  #resource({ run: _, ...entry }: Entry): NodeResource {
    const { clock, leaseMs, maxSkewMs, node } = this.#options;
    const silentMs = clock.now().getTime() - Date.parse(entry.seenAt);
    return { ...entry, isAlive: silentMs < leaseMs + maxSkewMs, isThisNode: entry.id === node.id };
  }
}

/** What cannot be read is written anew by the node it is about. */
function parseEntry(bytes: Uint8Array): Entry | undefined {
  try {
    return entrySchema.parse(JSON.parse(Buffer.from(bytes).toString()));
  } catch {
    return undefined;
  }
}

function idTaken(id: string, url: string): SandboxError {
  return new SandboxError("failed_precondition", {
    reason: "node_id_taken",
    message: `another node, at ${url}, runs with the id ${id} of this one: their sandboxes are not safe from each other`,
    hint: "stop one of the two and remove node-id from its home; a home must not be copied together with it",
    details: { id, url },
  });
}
