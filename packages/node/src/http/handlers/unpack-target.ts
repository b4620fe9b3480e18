import { posix } from "node:path";
import { SandboxError } from "@sandpiper/core";
import type { LiveSandbox } from "../../sandboxes/live-sandbox.ts";

/** The owner must be able to write to a directory while it is filled. */
const OWNER_BITS = 0o700;
/** Limit for the arguments of one command that creates links; the kernel allows about 128 KiB. */
const LINKS_AT_ONCE_BYTES = 64 * 1024;
const MAX_LINKS = 100_000;
/** Links wait in memory until the end of the archive. */
const MAX_LINK_BYTES = 16 * 1024 * 1024;
/** Maximum number of remembered directories. */
const MAX_KNOWN = 10_000;
const MAKE_LINKS = 'while [ $# -gt 1 ]; do ln -sfT -- "$1" "$2" || exit 1; shift 2; done';

/** The directory that an archive is unpacked into. Links are created last, so that no entry can go through one. */
export class UnpackTarget {
  readonly #live: LiveSandbox;
  readonly #root: string;
  readonly #signal: AbortSignal;
  /** Paths that are known to be directories and not links; true if this archive created them. */
  readonly #directories = new Map<string, boolean>();
  readonly #links: { readonly target: string; readonly at: string }[] = [];
  #linkBytes = 0;

  constructor(live: LiveSandbox, { path, signal }: { readonly path: string; readonly signal: AbortSignal }) {
    this.#live = live;
    this.#root = path;
    this.#signal = signal;
  }

  async file(at: string, content: AsyncIterable<Uint8Array>, mode: number): Promise<void> {
    if (at === "") throw noName();
    await this.#replaceLink(at);
    await this.#live.files.write(this.#path(at), content, { mode, signal: this.#signal });
  }

  async directory(at: string, mode: number): Promise<void> {
    await this.#ensure(at, mode | OWNER_BITS);
  }

  async symlink(at: string, target: string): Promise<void> {
    if (at === "") throw noName();
    this.#linkBytes += Buffer.byteLength(target) + Buffer.byteLength(at);
    if (this.#links.length === MAX_LINKS || this.#linkBytes > MAX_LINK_BYTES) throw tooManyLinks();
    this.#links.push({ target, at });
  }

  async finish(): Promise<void> {
    await this.#ensure("", undefined);
    for (const { at } of this.#links) await this.#ensure(parentOf(at), undefined);
    const root = (await this.#live.files.stat(this.#root, { signal: this.#signal })).path;
    let batch: string[] = [];
    let size = 0;
    for (const { target, at } of this.#links) {
      const pair = [target, posix.join(root, at)];
      batch.push(...pair);
      size += Buffer.byteLength(pair.join("  "));
      if (size < LINKS_AT_ONCE_BYTES) continue;
      await this.#makeLinks(batch);
      [batch, size] = [[], 0];
    }
    if (batch.length > 0) await this.#makeLinks(batch);
  }

  async #makeLinks(pairs: readonly string[]): Promise<void> {
    const argv = ["/bin/sh", "-c", MAKE_LINKS, "sh", ...pairs];
    const { exitCode, stderr } = await this.#live.exec({ argv, cwd: "/" }, { signal: this.#signal });
    if (exitCode === 0) return;
    throw new SandboxError("link_failed", { message: `could not create the archive's links: ${stderr.trim()}` });
  }

  /** Creates a directory and its parents, none of which may be a link. Resolves to whether it is new. */
  async #ensure(at: string, mode: number | undefined): Promise<boolean> {
    const known = this.#directories.get(at);
    if (known !== undefined) return known;
    const options = { mode, signal: this.#signal };
    if (this.#directories.size >= MAX_KNOWN) this.#directories.clear();
    if (at === "") {
      const isNew = await this.#live.files.mkdir(this.#root, { ...options, parents: true });
      this.#directories.set(at, isNew);
      return isNew;
    }
    await this.#ensure(parentOf(at), undefined);
    const isNew = await this.#live.files.mkdir(this.#path(at), options);
    if (!isNew) await this.#requireNoLink(at);
    this.#directories.set(at, isNew);
    return isNew;
  }

  async #requireNoLink(at: string): Promise<void> {
    const { kind } = await this.#live.files.stat(this.#path(at), { follow: false, signal: this.#signal });
    if (kind === "directory") return;
    throw new SandboxError("path_through_link", {
      message: `${this.#path(at)} is a ${kind}, but the archive has entries below it`,
    });
  }

  /** Removes a link in the file's place, because a write would follow it. */
  async #replaceLink(at: string): Promise<void> {
    if (await this.#ensure(parentOf(at), undefined)) return;
    const { files } = this.#live;
    try {
      const { kind } = await files.stat(this.#path(at), { follow: false, signal: this.#signal });
      if (kind === "symlink") await files.remove(this.#path(at), { signal: this.#signal });
    } catch (thrown) {
      if (SandboxError.from(thrown).code !== "not_found") throw thrown;
    }
  }

  #path(at: string): string {
    return posix.join(this.#root, at);
  }
}

function parentOf(at: string): string {
  const parent = posix.dirname(at);
  return parent === "." ? "" : parent;
}

function noName(): SandboxError {
  return new SandboxError("bad_archive", { message: "the archive contains a file or link without a name" });
}

function tooManyLinks(): SandboxError {
  return new SandboxError("too_many_links", {
    message: `the archive contains more than ${MAX_LINKS} symlinks, or ${MAX_LINK_BYTES} bytes of their names and targets`,
    details: { limit: MAX_LINKS },
  });
}
