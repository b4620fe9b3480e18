import { existsSync, openSync, readSync, realpathSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { Fault } from "./faults.ts";

const EXT4_MAGIC_AT = 1024 + 56;

/** The files that a jailed process would see: paths start at its jail, with the rights of its user. */
export class JailedFiles {
  readonly #root = realpathSync(".");
  readonly #uid = Number(process.env["DOUBLE_UID"] ?? "0");

  /** The host path of a path in the jail. */
  locate(path: string): string {
    const found = join(this.#root, resolve("/", path));
    const real = existsSync(found) ? realpathSync(found) : found;
    if (real !== this.#root && !real.startsWith(`${this.#root}/`)) throw new Fault(`${path} leads out of the jail`);
    return found;
  }

  /** Refuses a file that the process could not open. */
  require(path: string, access: "read" | "write"): string {
    const found = this.locate(path);
    if (!existsSync(found)) throw new Fault(`No such file or directory (os error 2) ${path}`);
    const { mode, uid } = statSync(found);
    const bits = (access === "read" ? 0o4 : 0o6) << (uid === this.#uid ? 6 : 0);
    if (this.#uid !== 0 && (mode & bits) !== bits) throw new Fault(`Permission denied (os error 13) ${path}`);
    return found;
  }

  /** The directory of a file that the process will create. */
  requirePlace(path: string): string {
    this.require(join(path, ".."), "write");
    return this.locate(path);
  }

  requireExt4(path: string): void {
    if (readAt(path, EXT4_MAGIC_AT, 2).readUInt16LE() !== 0xef53) throw new Fault(`${path} has no filesystem`);
  }

  requireKernel(path: string): void {
    const magic = readAt(path, 0, 4).toString("latin1");
    if (magic !== "\x7fELF") throw new Fault("Kernel Loader: failed to load ELF kernel image");
  }
}

export function readAt(path: string, position: number, size: number): Buffer {
  const descriptor = openSync(path, "r");
  const bytes = Buffer.alloc(size);
  readSync(descriptor, bytes, 0, size, position);
  return bytes;
}
