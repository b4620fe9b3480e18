import { type Clock, type ObjectStore, SandboxError, type StoredObject } from "@sandpiper/core";
import type { NodeResource } from "@sandpiper/protocol";
import { z } from "zod";
import { isRefusedObject } from "../store/signed-store.ts";
import { repeat } from "./repeat.ts";

const PREFIX = "nodes/";
/** A node without a heartbeat for this long is no longer listed. */
const FORGET_MS = 3_600_000;
/** Bounds the memory for entries that no node wrote. */
const MAX_REPORTED = 1000;
/** A node may miss a heartbeat without being considered dead. */
const HEARTBEATS_PER_LEASE = 3;

const entrySchema = z.object({
  id: z.uuid(),
  url: z.string().nullable(),
  version: z.string(),
  startedAt: z.iso.datetime(),
  seenAt: z.iso.datetime(),
  isDraining: z.boolean(),
  sandboxes: z.int(),
  /** Absent in entries of earlier versions. */
  runtimes: z.array(z.string()).optional(),
  /** Identifies one process of a node, to detect another with the same id. */
  run: z.string(),
});

type Entry = z.infer<typeof entrySchema>;

export interface NodeDescription {
  readonly isDraining: boolean;
  readonly sandboxes: number;
  readonly runtimes?: string[] | undefined;
}

export interface NodeRegistryOptions {
  readonly store: ObjectStore;
  readonly node: { readonly id: string; readonly url: string | null; readonly version: string };
  readonly clock: Clock;
  readonly leaseMs: number;
  readonly maxSkewMs: number;
  /** The part of the entry that changes between heartbeats. */
  readonly describe: () => NodeDescription;
  /** Called when a heartbeat fails, and when another node uses the same id. */
  readonly onError: (error: SandboxError) => void;
}

/** The nodes of the cluster. Each node writes its entry to the store at an interval, as a heartbeat. */
export class NodeRegistry {
  readonly #options: NodeRegistryOptions;
  readonly #run = crypto.randomUUID();
  readonly #startedAt: string;
  #lastBeat: Promise<void> = Promise.resolve();
  #wasWritten = false;
  /** Keys of entries that were reported. */
  readonly #refused = new Set<string>();
  #stop = () => {};

  constructor(options: NodeRegistryOptions) {
    this.#options = options;
    this.#startedAt = options.clock.now().toISOString();
  }

  /** Resolves when the other nodes can see this one. */
  async start(): Promise<void> {
    const { clock, leaseMs, onError } = this.#options;
    await this.#beat();
    this.#stop = repeat(clock, leaseMs / HEARTBEATS_PER_LEASE, () =>
      this.announce().catch((thrown) => onError(SandboxError.from(thrown))),
    );
  }

  /** Writes a heartbeat now, for example when a drain begins. */
  announce(): Promise<void> {
    this.#lastBeat = this.#lastBeat.catch(() => {}).then(() => this.#beat());
    return this.#lastBeat;
  }

  /** Removes this node from the list. */
  async stop(): Promise<void> {
    this.#stop();
    await this.#lastBeat.catch(() => {});
    const { store } = this.#options;
    const stored = await this.#get(this.#key);
    if (stored !== undefined && parseEntry(stored.bytes)?.run === this.#run) {
      await store.delete(this.#key, { ifMatch: stored.tag });
    }
  }

  /** All nodes with a heartbeat in the last hour, ordered by id. */
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

  async #beat(): Promise<void> {
    const { store, node, clock, describe, onError } = this.#options;
    const before = await this.#get(this.#key);
    const other = before && parseEntry(before.bytes);
    if (this.#wasWritten && other !== undefined && other.run !== this.#run) onError(idTaken(node.id, other.url));
    const seenAt = clock.now().toISOString();
    const entry: Entry = { ...node, ...describe(), startedAt: this.#startedAt, seenAt, run: this.#run };
    await store.put(this.#key, Buffer.from(JSON.stringify(entry)));
    this.#wasWritten = true;
  }

  async #read(key: string): Promise<Entry | undefined> {
    const { store, clock } = this.#options;
    const stored = await this.#get(key);
    const entry = stored && parseEntry(stored.bytes);
    if (stored === undefined || entry === undefined) return undefined;
    if (clock.now().getTime() - Date.parse(entry.seenAt) < FORGET_MS) return entry;
    await store.delete(key, { ifMatch: stored.tag });
    return undefined;
  }

  /** Ignores an entry that no node wrote: its node overwrites it with the next heartbeat. */
  async #get(key: string): Promise<StoredObject | undefined> {
    const { store, onError } = this.#options;
    try {
      return await store.get(key);
    } catch (thrown) {
      if (!isRefusedObject(thrown)) throw thrown;
      if (!this.#refused.has(key)) onError(thrown);
      if (this.#refused.size >= MAX_REPORTED) this.#refused.clear();
      this.#refused.add(key);
      return undefined;
    }
  }

  #resource({ run: _, ...entry }: Entry): NodeResource {
    const { clock, leaseMs, maxSkewMs, node } = this.#options;
    const silentMs = clock.now().getTime() - Date.parse(entry.seenAt);
    return { ...entry, isAlive: silentMs < leaseMs + maxSkewMs, isThisNode: entry.id === node.id };
  }
}

/** Ignores a damaged entry: its node overwrites it with the next heartbeat. */
function parseEntry(bytes: Uint8Array): Entry | undefined {
  try {
    return entrySchema.parse(JSON.parse(Buffer.from(bytes).toString()));
  } catch {
    return undefined;
  }
}

function idTaken(id: string, url: string | null): SandboxError {
  return new SandboxError("node_id_taken", {
    message: `another node${url === null ? "" : `, at ${url},`} uses the id ${id} of this node: both may run the same sandboxes`,
    details: { id, ...(url !== null && { url }) },
  });
}
