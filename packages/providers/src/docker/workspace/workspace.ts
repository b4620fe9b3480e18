import { setTimeout as sleep } from "node:timers/promises";
import { type InstanceSpec, SandboxError } from "@sandpiper/core";
import { extract } from "tar-stream";
import { type CloneCommand, cloneCommand } from "../../host/git-clone.ts";
import { NO_NETWORK, networkOf } from "../container/network.ts";
import type { Engine } from "../engine/engine.ts";
import { WORKSPACE_PATH } from "../storage/volumes.ts";
import { runInContainer } from "./run-in-container.ts";

const CLONE_TIMEOUT_MS = 600_000;
/** The agent opens the volume first of all. */
const OPENING_INTERVAL_MS = 20;
const OPEN_MODE = 0o777;

export interface CloneOptions {
  /** The id of a running container. */
  readonly container: string;
  readonly signal: AbortSignal;
  readonly timeoutMs?: number | undefined;
}

/** Rejects a repository for a sandbox without a network. */
export function requireWorkspace(spec: InstanceSpec): void {
  const clone = cloneOf(spec);
  if (clone === undefined || networkOf(spec) !== NO_NETWORK) return;
  throw new SandboxError("workspace_needs_network", {
    message: `cannot clone ${clone.shownUrl} into sandbox ${spec.id}: it has no network`,
    hint: 'set container.network, for example to "bridge"',
  });
}

/** Clones the sandbox's repository into its workspace, unless the workspace already has files. */
export async function cloneWorkspace(
  engine: Engine,
  spec: InstanceSpec,
  { container, signal, timeoutMs = CLONE_TIMEOUT_MS }: CloneOptions,
): Promise<void> {
  const clone = cloneOf(spec);
  if (clone === undefined) return;
  const limit = AbortSignal.timeout(timeoutMs);
  try {
    await cloneWhenOpen(engine, clone, { container, signal: AbortSignal.any([signal, limit]) });
  } catch (error) {
    signal.throwIfAborted();
    if (limit.aborted) throw tookTooLong(clone, timeoutMs);
    throw error;
  }
}

function cloneOf({ container }: InstanceSpec): CloneCommand | undefined {
  const { workspace, isWorkspaceCopied = false } = container ?? {};
  return workspace !== undefined && "git" in workspace && !isWorkspaceCopied
    ? cloneCommand(workspace, WORKSPACE_PATH)
    : undefined;
}

async function cloneWhenOpen(engine: Engine, clone: CloneCommand, { container, signal }: CloneOptions): Promise<void> {
  const { isEmpty, uid, gid } = await untilOpen(engine, container, signal);
  if (!isEmpty) return;
  // The agent gave the directory to the default user, and git requires that the owner runs it.
  const { argv, env } = clone;
  const user = `${uid}:${gid}`;
  const { exitCode, output } = await runInContainer(engine, container, { argv, env, user, signal });
  if (exitCode !== 0) throw cloneFailed(clone, exitCode, output);
}

/** Waits until the agent has opened the workspace to its users, unless it already has files. */
export async function untilOpen(engine: Engine, container: string, signal: AbortSignal) {
  let workspace = await inspect(engine, container, signal);
  while (workspace.isEmpty && !workspace.isOpen) {
    await requireRunning(engine, container);
    await sleep(OPENING_INTERVAL_MS, undefined, { signal });
    workspace = await inspect(engine, container, signal);
  }
  return workspace;
}

async function requireRunning(engine: Engine, container: string): Promise<void> {
  const doing = `inspect container ${container}`;
  const { State } = await engine.call(doing, (docker) => docker.getContainer(container).inspect());
  if (State.Running) return;
  throw new SandboxError("container_ended", {
    message: `container ${container} ended with exit code ${State.ExitCode} before its workspace was cloned`,
    hint: "try again; if this repeats, check whether the image and the limits let the agent start",
  });
}

/** Inspects the workspace without running a program of the image. */
async function inspect(engine: Engine, container: string, signal: AbortSignal) {
  return await engine.call(`read ${WORKSPACE_PATH} of container ${container}`, async (docker) => {
    const archive = await docker.getContainer(container).getArchive({ path: WORKSPACE_PATH, abortSignal: signal });
    const entries = archive.pipe(extract());
    archive.on("error", (error) => entries.destroy(error));
    const headers = [];
    try {
      for await (const entry of entries) {
        headers.push(entry.header);
        // Two entries are enough to see that it is not empty.
        if (headers.length === 2) break;
        entry.resume();
      }
    } finally {
      (archive as NodeJS.ReadableStream & { destroy(): void }).destroy();
    }
    const [{ uid = 0, gid = 0, mode = 0 } = {}] = headers;
    return { isEmpty: headers.length < 2, isOpen: (mode & OPEN_MODE) === OPEN_MODE, uid, gid };
  });
}

function cloneFailed(clone: CloneCommand, exitCode: number, output: string): SandboxError {
  // Runtimes report a missing program with exit code 126 or 127.
  const isMissing = exitCode >= 126 && /executable|no such file/i.test(output);
  if (isMissing) {
    return new SandboxError("no_git_in_image", {
      message: `could not clone ${clone.shownUrl} into the workspace: the image has no git`,
      hint: "use an image with git, or mount a directory as the workspace",
    });
  }
  return new SandboxError("workspace_clone_failed", {
    message: `could not clone ${clone.shownUrl} into the workspace: git exited with code ${exitCode}: ${clone.redact(output.trim())}`,
    hint: "check the URL, the ref (a branch or a tag), and the sandbox's network",
    details: { exitCode },
  });
}

function tookTooLong({ shownUrl }: CloneCommand, timeoutMs: number): SandboxError {
  return new SandboxError("workspace_clone_timeout", {
    message: `could not clone ${shownUrl} into the workspace within ${timeoutMs} ms`,
    hint: "check the sandbox's network; clone a large repository with a command in the sandbox instead",
  });
}
