import { setTimeout as sleep } from "node:timers/promises";
import { type InstanceSpec, SandboxError } from "@sandpiper/core";
import { extract } from "tar-stream";
import { NO_NETWORK, networkOf } from "../container/network.ts";
import type { Engine } from "../engine/engine.ts";
import { WORKSPACE_PATH } from "../storage/volumes.ts";
import { type CloneCommand, cloneCommand } from "./git-clone.ts";
import { runInContainer } from "./run-in-container.ts";

const CLONE_TIMEOUT_MS = 600_000;
/** The agent opens the volume as the first thing it does. */
const OPENING_INTERVAL_MS = 20;
const OPEN_MODE = 0o777;

export interface CloneOptions {
  /** Of a container whose agent runs. */
  readonly container: string;
  readonly signal: AbortSignal;
  readonly timeoutMs?: number | undefined;
}

/** Refuses a repository that could not be cloned, before anything is made for the sandbox. */
export function requireWorkspace(spec: InstanceSpec): void {
  const clone = cloneOf(spec);
  if (clone === undefined || networkOf(spec) !== NO_NETWORK) return;
  throw new SandboxError("invalid_argument", {
    reason: "workspace_needs_network",
    message: `${clone.shownUrl} cannot be cloned into sandbox ${spec.id}: it has no network`,
    hint: 'name a network in container.network, for example "bridge"',
  });
}

/** Clones the repository that a sandbox asks for into its workspace, unless an earlier instance has left something there. */
export async function cloneWorkspace(
  engine: Engine,
  spec: InstanceSpec,
  { container, signal, timeoutMs = CLONE_TIMEOUT_MS }: CloneOptions,
): Promise<void> {
  const clone = cloneOf(spec);
  if (clone === undefined) return;
  const limit = AbortSignal.timeout(timeoutMs);
  try {
    await cloneWhenOpen(engine, { clone, container, signal: AbortSignal.any([signal, limit]) });
  } catch (error) {
    signal.throwIfAborted();
    if (limit.aborted) throw tookTooLong(clone, timeoutMs);
    throw error;
  }
}

function cloneOf({ container }: InstanceSpec): CloneCommand | undefined {
  const { workspace } = container ?? {};
  return workspace !== undefined && "git" in workspace ? cloneCommand(workspace, WORKSPACE_PATH) : undefined;
}

interface CloneWork {
  readonly clone: CloneCommand;
  readonly container: string;
  readonly signal: AbortSignal;
}

async function cloneWhenOpen(engine: Engine, { clone, container, signal }: CloneWork): Promise<void> {
  let workspace = await look(engine, container, signal);
  while (workspace.isEmpty && !workspace.isOpen) {
    await requireRunning(engine, container);
    await sleep(OPENING_INTERVAL_MS, undefined, { signal });
    workspace = await look(engine, container, signal);
  }
  if (!workspace.isEmpty) return;
  // The agent has given it to the default user, and git wants its files to be the directory's owner's.
  const { argv, env } = clone;
  const { exitCode, output } = await runInContainer(engine, container, { argv, env, user: workspace.owner, signal });
  if (exitCode !== 0) throw cloneFailed(clone, exitCode, output);
}

async function requireRunning(engine: Engine, container: string): Promise<void> {
  const doing = `look at container ${container}`;
  const { State } = await engine.call(doing, (docker) => docker.getContainer(container).inspect());
  if (State.Running) return;
  throw new SandboxError("unavailable", {
    reason: "instance_ended",
    message: `container ${container} ended before its workspace was cloned, with exit code ${State.ExitCode}`,
    hint: "try again; if it ends again, the image or the limits may not let the agent start",
  });
}

/** What the workspace is like, without any program of the image. */
async function look(engine: Engine, container: string, signal: AbortSignal) {
  return await engine.call(`look into ${WORKSPACE_PATH} of container ${container}`, async (docker) => {
    const archive = await docker.getContainer(container).getArchive({ path: WORKSPACE_PATH, abortSignal: signal });
    const entries = archive.pipe(extract());
    archive.on("error", (error) => entries.destroy(error));
    const headers = [];
    try {
      for await (const entry of entries) {
        headers.push(entry.header);
        // More of them only say again that it is not empty.
        if (headers.length === 2) break;
        entry.resume();
      }
    } finally {
      (archive as NodeJS.ReadableStream & { destroy(): void }).destroy();
    }
    const [{ uid = 0, gid = 0, mode = 0 } = {}] = headers;
    return { isEmpty: headers.length < 2, isOpen: (mode & OPEN_MODE) === OPEN_MODE, owner: `${uid}:${gid}` };
  });
}

function cloneFailed(clone: CloneCommand, exitCode: number, output: string): SandboxError {
  // What runs programs in containers says so when there is none, with one of two exit codes.
  const isMissing = exitCode >= 126 && /executable|no such file/i.test(output);
  if (isMissing) {
    return new SandboxError("failed_precondition", {
      reason: "no_git_in_image",
      message: `${clone.shownUrl} was not cloned into the workspace: the image has no git`,
      hint: "use an image that has git, or lend a directory as workspace",
    });
  }
  return new SandboxError("failed_precondition", {
    reason: "workspace_clone_failed",
    message: `${clone.shownUrl} was not cloned into the workspace: git ended with ${exitCode}: ${clone.redact(output.trim())}`,
    hint: "look at the URL, the ref (a branch or a tag), and whether the sandbox's network leads there",
    details: { exitCode },
  });
}

function tookTooLong({ shownUrl }: CloneCommand, timeoutMs: number): SandboxError {
  return new SandboxError("deadline_exceeded", {
    reason: "workspace_clone_failed",
    message: `${shownUrl} was not cloned into the workspace within ${timeoutMs} ms`,
    hint: "look whether the sandbox's network leads there; a large repository can be cloned by a command of the sandbox",
  });
}
