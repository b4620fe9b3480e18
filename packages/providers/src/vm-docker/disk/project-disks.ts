import { createHash } from "node:crypto";
import { link, mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type CacheVolume, KeyedMutex } from "@sandpiper/core";
import { formatVolumeDisk } from "../../guest/format-disk.ts";
import { publishFile } from "../../host/publish-file.ts";

const DISK = "volumes.img";
const RECORD = "project.json";
const ID_DIGITS = 24;

export type NotedCache = Pick<CacheVolume, "name" | "sizeBytes">;

interface ProjectRecord {
  readonly projectId: string;
  readonly caches: readonly NotedCache[];
  /** Caches that were cleared while the machine did not run; the next one removes them. */
  readonly cleared: readonly string[];
}

export interface ProjectDisksOptions {
  readonly directory: string;
  /** The size of new disks; they take only the space in use. */
  readonly sizeMib: number;
}

/**
 * One disk for the volumes of each project, which outlives the project's machines, and a note of the caches on it. This host
 * never reads the disk, whose content comes from sandboxes.
 */
export class ProjectDisks {
  readonly #options: ProjectDisksOptions;
  readonly #mutex = new KeyedMutex<string>();
  readonly #clearing = new KeyedMutex<string>();

  constructor(options: ProjectDisksOptions) {
    this.#options = options;
  }

  /** The disk for a new machine. While the machine of another program uses the project's disk, it is a temporary one. */
  async plan(projectId: string): Promise<{ readonly sizeMib: number; attach(path: string): Promise<void> }> {
    const known = await stat(this.#path(projectId, DISK)).catch(() => undefined);
    // A machine that uses the disk has a link to it.
    if (known === undefined || known.nlink > 1) {
      const { sizeMib } = this.#options;
      const isTemporary = known !== undefined;
      const attach = isTemporary
        ? (path: string) => formatVolumeDisk(path, sizeMib)
        : (path: string) => this.#attach(projectId, sizeMib, path);
      return { sizeMib, attach };
    }
    const sizeMib = known.size / 2 ** 20;
    return { sizeMib, attach: (path) => this.#attach(projectId, sizeMib, path) };
  }

  /** The caches of all projects, as last noted. */
  async list(): Promise<readonly Pick<ProjectRecord, "projectId" | "caches">[]> {
    const names = await readdir(this.#options.directory).catch(() => []);
    const records = await Promise.all(names.map((name) => readRecord(join(this.#options.directory, name, RECORD))));
    return records.filter((record) => record !== undefined);
  }

  /** Replaces what is known of a project's caches. */
  async note(projectId: string, caches: readonly NotedCache[]): Promise<void> {
    const noted = caches.map(({ name, sizeBytes }) => ({ name, sizeBytes }));
    await this.#update(projectId, ({ cleared }) => ({ caches: noted, cleared }));
  }

  /** Adds caches that a new sandbox uses; their size is not known yet. */
  async add(projectId: string, names: readonly string[]): Promise<void> {
    await this.#update(projectId, ({ caches, cleared }) => {
      const isNew = (name: string) => !caches.some((cache) => cache.name === name);
      return { caches: [...caches, ...names.filter(isNew).map((name) => ({ name, sizeBytes: 0 }))], cleared };
    });
  }

  /** Makes the project's next machine remove a cache; returns false if the cache is unknown. */
  async clear(projectId: string, name: string): Promise<boolean> {
    const record = await readRecord(this.#path(projectId, RECORD));
    if (record?.caches.some((cache) => cache.name === name) !== true) return false;
    await this.#update(projectId, ({ caches, cleared }) => ({
      caches: caches.filter((cache) => cache.name !== name),
      cleared: [...cleared, name],
    }));
    await this.tidy(projectId);
    return true;
  }

  /** Removes from a running machine the caches that were cleared before its start. */
  async removeCleared(projectId: string, remove: (name: string) => Promise<void>): Promise<void> {
    await this.#clearing.run(projectId, async () => {
      const { cleared = [] } = (await readRecord(this.#path(projectId, RECORD))) ?? {};
      if (cleared.length === 0) return;
      for (const name of cleared) await remove(name);
      await this.#update(projectId, ({ caches }) => ({ caches, cleared: [] }));
    });
  }

  /** Removes the disk of a project without caches, unless a machine uses it. */
  async tidy(projectId: string): Promise<void> {
    await this.#mutex.run(projectId, async () => {
      const record = await readRecord(this.#path(projectId, RECORD));
      if (record !== undefined && record.caches.length > 0) return;
      const disk = await stat(this.#path(projectId, DISK)).catch(() => undefined);
      if ((disk?.nlink ?? 1) > 1) return;
      await rm(this.#path(projectId), { recursive: true, force: true });
    });
  }

  async #attach(projectId: string, sizeMib: number, path: string): Promise<void> {
    await this.#mutex.run(projectId, async () => {
      const disk = this.#path(projectId, DISK);
      await mkdir(this.#path(projectId), { recursive: true, mode: 0o700 });
      if ((await stat(disk).catch(() => undefined)) === undefined) {
        await publishFile(disk, (draft) => formatVolumeDisk(draft, sizeMib));
      }
      await link(disk, path);
    });
  }

  async #update(projectId: string, change: (known: ProjectRecord) => Omit<ProjectRecord, "projectId">): Promise<void> {
    await this.#mutex.run(projectId, async () => {
      const path = this.#path(projectId, RECORD);
      const known = (await readRecord(path)) ?? { projectId, caches: [], cleared: [] };
      const text = JSON.stringify({ projectId, ...change(known) });
      await publishFile(path, (draft) => writeFile(draft, text, { mode: 0o600 }));
    });
  }

  #path(projectId: string, ...names: readonly string[]): string {
    const id = createHash("sha256").update(projectId).digest("hex").slice(0, ID_DIGITS);
    return join(this.#options.directory, id, ...names);
  }
}

async function readRecord(path: string): Promise<ProjectRecord | undefined> {
  const text = await readFile(path, "utf8").catch(() => undefined);
  return text === undefined ? undefined : (JSON.parse(text) as ProjectRecord);
}
