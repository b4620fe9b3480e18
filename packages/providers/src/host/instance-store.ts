import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type InstanceRecord, SandboxError } from "@sandpiper/core";
import type { ErrorReason } from "@sandpiper/protocol";
import { isSandboxId, type SandboxId } from "@sandpiper/protocol";
import { hasCode } from "./has-code.ts";
import { type InstanceEntry, parseInstanceEntry } from "./instance-entry.ts";
import type { KillList, KillTarget } from "./kill-list.ts";
import { currentOwner, isOwnerAlive, type ProcessOwner } from "./process-owner.ts";
import { removeAbandoned, transientName } from "./transient-name.ts";

const RECORD = "record.json";
const REMOVING = "removing";

export interface GuardedInstances {
  readonly killList: KillList | undefined;
  /** What the lease guard kills to end an instance. */
  targetsOf(id: SandboxId): readonly KillTarget[] | Promise<readonly KillTarget[]>;
}

/**
 * The instances of one provider as directories, each with a record of its spec and its owner. A directory named with an
 * id always holds a complete record, so a program that is killed at any moment leaves nothing that its successor cannot
 * find.
 */
export class InstanceStore {
  readonly #root: string;
  readonly #guarded: GuardedInstances | undefined;
  #owner: Promise<ProcessOwner> | undefined;

  constructor(root: string, guarded?: GuardedInstances) {
    this.#root = root;
    this.#guarded = guarded;
  }

  directory(id: SandboxId): string {
    return join(this.#root, id);
  }

  /** Makes the directory with its record and the given files; must come before anything runs for it. */
  async add(entry: Omit<InstanceEntry, "owner">, files: Readonly<Record<string, string>>): Promise<string> {
    const { id } = entry.spec;
    const directory = this.directory(id);
    const owner = await this.owner();
    const transient = this.#transient(id, owner);
    const exists = new SandboxError("instance_exists", { message: `instance ${id} already exists in ${directory}` });
    await mkdir(this.#root, { recursive: true, mode: 0o700 });
    await mkdir(transient, { mode: 0o700 }).catch((error: unknown) =>
      Promise.reject(hasCode(error, "EEXIST") ? exists : error),
    );
    try {
      const contents = { ...files, [RECORD]: JSON.stringify({ ...entry, owner }) };
      await Promise.all(Object.entries(contents).map(([name, text]) => writeFile(join(transient, name), text)));
      await rename(transient, directory);
    } catch (error) {
      await rm(transient, { recursive: true, force: true });
      throw hasCode(error, "ENOTEMPTY", "EEXIST") ? exists : error;
    }
    await this.guard(id);
    return directory;
  }

  /** Lists the instance for the lease guard; call again before something else of it runs. */
  async guard(id: SandboxId, more: readonly KillTarget[] = []): Promise<void> {
    const { killList, targetsOf } = this.#guarded ?? {};
    if (killList !== undefined && targetsOf !== undefined) killList.set(id, [...(await targetsOf(id)), ...more]);
  }

  async read(id: SandboxId): Promise<InstanceEntry | undefined> {
    try {
      return parseInstanceEntry(id, await readFile(join(this.directory(id), RECORD), "utf8"));
    } catch (error) {
      if (hasCode(error, "ENOENT")) return undefined;
      throw error;
    }
  }

  /** The instances of this host, with whether each runs and whether its program has died. */
  async records(isRunning: (id: SandboxId) => Promise<boolean> | boolean): Promise<InstanceRecord[]> {
    return await Promise.all(
      (await this.list()).map(async ({ spec, createdAt, owner }) => ({
        id: spec.id,
        spec,
        createdAt: new Date(createdAt),
        isRunning: await isRunning(spec.id),
        isOrphan: !(await isOwnerAlive(owner)),
      })),
    );
  }

  /** The entries of all instances, of any owner; removes what dead programs were adding or removing. */
  async list(): Promise<InstanceEntry[]> {
    await removeAbandoned(this.#root);
    const names = await readdir(this.#root).catch((error: unknown) => {
      if (hasCode(error, "ENOENT")) return [];
      throw error;
    });
    const entries = await Promise.all(names.filter(isSandboxId).map((id) => this.read(id as SandboxId)));
    return entries.filter((entry) => entry !== undefined);
  }

  /**
   * Makes this program the owner of an instance whose owner has ended. Exactly one program can follow an owner, because
   * the claim file is named after it and never removed.
   */
  async claim(id: SandboxId): Promise<InstanceEntry> {
    const entry = await this.#adoptable(id);
    if (await isOwnerAlive(entry.owner)) throw cannotAdopt(id, "instance_owned", `process ${entry.owner.pid} owns it`);
    const directory = this.directory(id);
    const owner = await this.owner();
    const claim = join(directory, `claim-${entry.owner.pid}-${entry.owner.startTicks}`);
    await writeFile(claim, JSON.stringify(owner), { flag: "wx" }).catch((error: unknown) => {
      if (!hasCode(error, "EEXIST")) throw error;
      throw cannotAdopt(id, "instance_claimed", "another program has adopted it, or was about to when it ended");
    });
    const next: InstanceEntry = { ...entry, owner };
    const draft = join(directory, `${RECORD}~`);
    await writeFile(draft, JSON.stringify(next));
    await rename(draft, join(directory, RECORD));
    await this.guard(id);
    return next;
  }

  /** Rejects with the reason why this program cannot adopt an instance that it already owns. */
  async refuse(id: SandboxId): Promise<never> {
    await this.#adoptable(id);
    throw cannotAdopt(id, "instance_owned", `process ${process.pid} owns it`);
  }

  /** The first step of a removal: the owner then knows that the instance ends on purpose. */
  async beginRemoval(id: SandboxId): Promise<void> {
    await writeFile(join(this.directory(id), REMOVING), "").catch((error: unknown) => {
      if (!hasCode(error, "ENOENT")) throw error;
    });
  }

  /** Whether an instance is gone or being removed. */
  async isRemoved(id: SandboxId): Promise<boolean> {
    const names = await readdir(this.directory(id)).catch(() => [REMOVING]);
    return names.includes(REMOVING);
  }

  /** The last step of a removal. */
  async remove(id: SandboxId): Promise<void> {
    const transient = this.#transient(id, await this.owner());
    try {
      // The new name marks an interrupted removal.
      await rename(this.directory(id), transient);
    } catch (error) {
      if (!hasCode(error, "ENOENT")) throw error;
    }
    this.#guarded?.killList?.delete(id);
    await rm(transient, { recursive: true, force: true });
  }

  async owner(): Promise<ProcessOwner> {
    this.#owner ??= currentOwner();
    return this.#owner;
  }

  async #adoptable(id: SandboxId): Promise<InstanceEntry> {
    const entry = await this.read(id);
    if (entry !== undefined) return entry;
    throw new SandboxError("no_such_instance", {
      message: `instance ${id} cannot be adopted: not found in ${this.#root}`,
    });
  }

  #transient(id: SandboxId, owner: ProcessOwner): string {
    return join(this.#root, transientName(id, owner));
  }
}

function cannotAdopt(id: SandboxId, reason: ErrorReason, why: string): SandboxError {
  return new SandboxError(reason, {
    message: `instance ${id} cannot be adopted: ${why}`,
    hint: "use it through that program, end that program first, or remove the instance by its id",
  });
}
