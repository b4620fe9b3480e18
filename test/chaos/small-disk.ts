import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import { run } from "../../bench/run.ts";

const FILLING = ".filling";
const MIB = 1024 * 1024;

/** A small file system in memory that a test can fill. */
export class SmallDisk implements AsyncDisposable {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  static async mount(path: string, sizeMib: number): Promise<SmallDisk> {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    await run("mount", ["-t", "tmpfs", "-o", `size=${sizeMib}m,mode=0700`, "sandpiper-chaos", path]);
    return new SmallDisk(path);
  }

  /** Fills the disk up to the given number of free bytes. */
  async fill(leftBytes = 0): Promise<void> {
    const { bavail, bsize } = await statfs(this.path);
    let missing = bavail * bsize - leftBytes;
    try {
      for (let part = 0; missing > 0; part++, missing -= MIB) {
        writeFileSync(join(this.path, `${FILLING}-${part}`), Buffer.alloc(Math.min(MIB, missing), 1));
      }
    } catch (thrown) {
      // Another process used the last free bytes.
      if ((thrown as NodeJS.ErrnoException).code !== "ENOSPC") throw thrown;
    }
  }

  async free(): Promise<void> {
    await run("find", [this.path, "-maxdepth", "1", "-name", `${FILLING}-*`, "-delete"]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await run("umount", ["--lazy", this.path]).catch(() => undefined);
    rmSync(this.path, { recursive: true, force: true });
  }
}
