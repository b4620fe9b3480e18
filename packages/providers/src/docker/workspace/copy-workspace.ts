import type { Readable } from "node:stream";
import { type ContainerOptions, type InstanceSpec, SandboxError } from "@sandpiper/core";
import type { Engine } from "../engine/engine.ts";
import { WORKSPACE_PATH } from "../storage/volumes.ts";
import { untilOpen } from "./workspace.ts";

/** Reads the content of a workspace for an engine that has no files of this host, as a tar archive. */
export type ReadWorkspace = (
  workspace: NonNullable<ContainerOptions["workspace"]>,
  options: { readonly uid: number; readonly gid: number; readonly signal: AbortSignal },
) => Promise<Readable>;

export interface CopyOptions {
  /** The id of a running container. */
  readonly container: string;
  readonly read: ReadWorkspace | undefined;
  readonly signal: AbortSignal;
}

/** Fills the sandbox's workspace, unless it already has files. */
export async function copyWorkspace(
  engine: Engine,
  { id, container: { workspace, isWorkspaceCopied } = {} }: InstanceSpec,
  { container, read, signal }: CopyOptions,
): Promise<void> {
  if (workspace === undefined || isWorkspaceCopied !== true || read === undefined) return;
  const { isEmpty, uid, gid } = await untilOpen(engine, container, signal);
  if (!isEmpty) return;
  const archive = await read(workspace, { uid, gid, signal });
  const failed = new AbortController();
  archive.once("error", (error) => failed.abort(error));
  try {
    await engine.call(
      `fill the workspace of sandbox ${id}`,
      (docker) => docker.getContainer(container).putArchive(archive, { path: WORKSPACE_PATH }),
      AbortSignal.any([signal, failed.signal]),
    );
  } catch (thrown) {
    // An archive that could not be read has a better explanation than the engine.
    throw failed.signal.aborted ? SandboxError.from(failed.signal.reason) : thrown;
  } finally {
    archive.destroy();
  }
}
