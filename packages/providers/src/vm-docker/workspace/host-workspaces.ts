import { randomUUID } from "node:crypto";
import { lstat, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { type ContainerOptions, SandboxError } from "@sandpiper/core";
import { requireAllowedPath } from "../../host/allowed-path.ts";
import { currentOwner } from "../../host/process-owner.ts";
import { removeAbandoned, transientName } from "../../host/transient-name.ts";
import { cloneOnHost, type GitPolicy, requireGitHost, tooLarge } from "./clone-on-host.ts";
import { packDirectory } from "./pack-directory.ts";

const DEFAULT_CLONE_TIMEOUT_MS = 600_000;

type Workspace = NonNullable<ContainerOptions["workspace"]>;

export interface HostWorkspacesOptions extends GitPolicy {
  /** Holds clones while they are copied. Other users must be able to reach it, because git runs as one. */
  readonly directory: string;
  /** Directories of this host that sandboxes may copy, subdirectories included. */
  readonly allowedPaths: readonly string[];
  /** Sandpiper's own directories, which are never copied. */
  readonly ownPaths: readonly string[];
  readonly maxBytes: number;
  readonly cloneTimeoutMs?: number | undefined;
}

export interface WorkspaceArchiveOptions {
  /** The owner of all files. */
  readonly uid: number;
  readonly gid: number;
  readonly signal: AbortSignal;
}

/** The content of workspaces, read on this host for machines, which see neither its files nor a network. */
export class HostWorkspaces {
  readonly #options: HostWorkspacesOptions;

  constructor(options: HostWorkspacesOptions) {
    this.#options = options;
  }

  /** Rejects a workspace that is not allowed, before anything starts. */
  async require(workspace: Workspace | undefined): Promise<void> {
    if (workspace === undefined) return;
    if ("path" in workspace) await this.#realPath(workspace.path);
    else await requireGitHost(workspace, this.#options);
  }

  /** A tar archive of the workspace's content. */
  async archive(workspace: Workspace, options: WorkspaceArchiveOptions): Promise<Readable> {
    if ("path" in workspace) return this.#pack(await this.#realPath(workspace.path), options);
    const { directory, maxBytes, cloneTimeoutMs: timeoutMs = DEFAULT_CLONE_TIMEOUT_MS } = this.#options;
    await makeOwn(directory);
    await removeAbandoned(directory);
    const draft = join(directory, transientName(randomUUID(), await currentOwner()));
    const remove = () => rm(draft, { recursive: true, force: true });
    try {
      const { signal } = options;
      const clone = await cloneOnHost(workspace, { ...this.#options, directory: draft, maxBytes, timeoutMs, signal });
      const archive = this.#pack(clone, options);
      archive.once("close", () => void remove());
      return archive;
    } catch (thrown) {
      await remove();
      throw thrown;
    }
  }

  #pack(root: string, { uid, gid }: WorkspaceArchiveOptions): Readable {
    const { maxBytes } = this.#options;
    let total = 0;
    const onFile = (sizeBytes: number) => {
      total += sizeBytes;
      if (total > maxBytes) throw tooLarge(maxBytes);
    };
    return Readable.from(packDirectory(root, { uid, gid, onFile }) as AsyncIterable<Uint8Array>);
  }

  #realPath(path: string): Promise<string> {
    const { allowedPaths, ownPaths } = this.#options;
    return requireAllowedPath(path, { allowedPaths, ownPaths, isRemote: false });
  }
}

/** Its parent may be a directory that all users can write to. */
async function makeOwn(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o711 });
  const info = await lstat(directory);
  if (info.isDirectory() && info.uid === (process.getuid?.() ?? info.uid)) return;
  throw new SandboxError("unusable_path", {
    message: `cannot clone into ${directory}: it belongs to another user`,
    hint: "remove it, or set TMPDIR to another directory",
  });
}
