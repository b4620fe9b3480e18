import { copyFile, link, mkdir, readdir, rename, rm, stat, statfs, utimes } from "node:fs/promises";
import { join } from "node:path";
import { isProgram } from "../host/find-program.ts";
import { hasCode } from "../host/has-code.ts";

/** A version that can be the name of a directory. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._+-]{0,99}$/;

export type ProgramKind = "runsc" | "agent";

export interface KeepOptions {
  readonly kind: ProgramKind;
  readonly version: string;
  readonly source: string;
  /** The source is replaced and never written, so a link to it is as good as a copy. */
  readonly isImmutable?: boolean | undefined;
}

/**
 * The programs that instances and checkpoints depend on, one directory for each version. They stay when an upgrade replaces the
 * installed ones.
 */
export class KeptPrograms {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  find(kind: ProgramKind, version: string): string | undefined {
    if (!NAME.test(version)) return undefined;
    const path = this.#path(kind, version);
    return isProgram(path) ? path : undefined;
  }

  async versions(kind: ProgramKind): Promise<readonly string[]> {
    const names = await readdir(join(this.#directory, kind)).catch(() => []);
    return names.filter((version) => this.find(kind, version) !== undefined).sort();
  }

  /** Resolves to the path of the kept program, or to the source if its version is not a file name, or the disk is full. */
  async keep({ kind, version, source, isImmutable = false }: KeepOptions): Promise<string> {
    const known = this.find(kind, version);
    // Another build of the same version replaces no program that instances use.
    if (known !== undefined) return (await isSame(known, source)) ? known : source;
    if (!NAME.test(version)) return source;
    const path = this.#path(kind, version);
    await mkdir(join(this.#directory, kind, version), { recursive: true, mode: 0o755 });
    const draft = `${path}.${process.pid}.${crypto.randomUUID()}`;
    try {
      if (!isImmutable || !(await canLink(source, draft))) {
        if (!(await hasRoomFor(source, this.#directory))) return source;
        await copyWithTimes(source, draft);
      }
      await rename(draft, path);
    } catch (error) {
      // A full disk must not keep sandboxes from starting; the installed program stays until an upgrade.
      if (hasCode(error, "ENOSPC", "EDQUOT")) return source;
      throw error;
    } finally {
      await rm(draft, { force: true });
    }
    return path;
  }

  async remove(kind: ProgramKind, version: string): Promise<void> {
    if (NAME.test(version)) await rm(join(this.#directory, kind, version), { recursive: true, force: true });
  }

  #path(kind: ProgramKind, version: string): string {
    return join(this.#directory, kind, version, kind);
  }
}

/** A copy has the size and time of its source. */
async function isSame(one: string, other: string): Promise<boolean> {
  const [first, second] = await Promise.all([stat(one), stat(other)]);
  return first.size === second.size && Math.floor(first.mtimeMs) === Math.floor(second.mtimeMs);
}

/** A copy that does not fit would fill the disk for a moment, in which other writers fail. */
async function hasRoomFor(source: string, directory: string): Promise<boolean> {
  const [{ size }, { bavail, bsize }] = await Promise.all([stat(source), statfs(directory)]);
  return size < bavail * bsize;
}

/** False where the file system has no links, or the source is on another one. */
async function canLink(source: string, target: string): Promise<boolean> {
  try {
    await link(source, target);
    return true;
  } catch (error) {
    if (hasCode(error, "EXDEV", "EPERM", "EMLINK", "ENOTSUP")) return false;
    throw error;
  }
}

/** gVisor may compare the times of a file that saved memory refers to. */
async function copyWithTimes(source: string, target: string): Promise<void> {
  await copyFile(source, target);
  const { atime, mtime } = await stat(source);
  await utimes(target, atime, mtime);
}
