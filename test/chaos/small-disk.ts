import { mkdirSync, rmSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import { run } from "../../bench/run.ts";

const FILLING = ".filling";

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
    const missing = bavail * bsize - leftBytes;
    // Another process may use the last free bytes meanwhile; then smaller files take the rest.
    for (let bytes = missing, part = 0; bytes >= bsize; part++) {
      const isFilled = await run("fallocate", ["--length", String(bytes), join(this.path, `${FILLING}-${part}`)]).then(
        () => true,
        () => false,
      );
      if (isFilled) return;
      const left = await statfs(this.path);
      bytes = Math.min(bytes / 2, left.bavail * left.bsize - leftBytes);
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
