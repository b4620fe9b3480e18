import { dirname } from "node:path";
import { text } from "node:stream/consumers";
import type { ContainerOptions, InstanceSpec } from "@sandpiper/core";
import { rejection } from "@sandpiper/core/testing";
import { afterEach, describe, expect, it } from "vitest";
import { findAgent } from "../../host/find-agent.ts";
import { shared } from "../../host/testing/shared.ts";
import { networkOf } from "../container/network.ts";
import { mountsOf } from "../storage/mounts.ts";
import { createVolumes, openDirArguments, removeVolumes } from "../storage/volumes.ts";
import { connectTo, removeContainers } from "../testing/connect.ts";
import { containerSpec } from "../testing/container-spec.ts";
import { startDockerd } from "../testing/dockerd.ts";
import { startGitServer } from "../testing/git-server.ts";
import { importTestImage } from "../testing/test-image.ts";
import { runInContainer } from "./run-in-container.ts";
import { cloneWorkspace, requireWorkspace } from "./workspace.ts";

const home = "0123456789ab";
const signal = new AbortController().signal;
const secret = "s3cret-of-a-repository";
const ids: InstanceSpec["id"][] = [];

const dockerd = await shared(startDockerd({ bridge: true }));
const engine = await shared(connectTo(dockerd));
const server = await shared(startGitServer(dockerd.bridgeAddress ?? "", { user: "me", password: secret }));
const withGit = await importTestImage(engine, { name: "test:git", variant: "git" });
const withoutGit = await importTestImage(engine, { name: "test:tiny", variant: "tiny" });
afterEach(async () => {
  await removeContainers(engine);
  for (const id of ids.splice(0)) await removeVolumes(engine, id, home);
});

function repository(area: string, ref?: string): ContainerOptions {
  return { network: "bridge", workspace: { git: `http://${area}/repository.git`, ...(ref && { ref }) } };
}

/** Starts a container with a running agent. */
async function start(spec: InstanceSpec, image = withGit, program = "/.sandpiper/sandpiper-agent"): Promise<string> {
  ids.push(spec.id);
  await createVolumes(engine, spec, { home, signal });
  const paths = { allowedPaths: [], ownPaths: [], isRemote: false };
  const [, ...mounts] = await mountsOf(spec, { agentVolume: "", home, paths });
  const agent = { Type: "bind" as const, Source: dirname(findAgent()), Target: "/.sandpiper", ReadOnly: true };
  const container = await engine.docker.createContainer({
    Image: image,
    Entrypoint: [program, "--default-user", "user", ...openDirArguments(spec, home)],
    OpenStdin: true,
    HostConfig: {
      Mounts: [agent, ...mounts],
      NetworkMode: networkOf(spec),
      ReadonlyRootfs: spec.container?.isRootReadOnly ?? false,
    },
  });
  await container.start();
  return container.id;
}

/** Starts a container and clones the repository into its workspace. */
async function clone(spec: InstanceSpec, image = withGit): Promise<string> {
  const container = await start(spec, image);
  await cloneWorkspace(engine, spec, { container, signal });
  return container;
}

async function outputOf(container: string, ...argv: readonly string[]): Promise<string> {
  const { exitCode, output } = await runInContainer(engine, container, { argv, user: "1000:1000", env: {}, signal });
  expect(exitCode, output).toBe(0);
  return output;
}

describe("a workspace with a repository", () => {
  it("is cloned in the container for the default user", async () => {
    const container = await clone(containerSpec(repository(`${server.address}/open`)));
    expect(await outputOf(container, "cat", "/workspace/file")).toBe("second");
    expect(await outputOf(container, "stat", "--format", "%U", "/workspace", "/workspace/file")).toBe("user\nuser\n");
    // Git refuses a repository of another user.
    expect(await outputOf(container, "git", "-C", "/workspace", "status", "--short")).toBe("");
  });

  it("is cloned at the given ref, even with a read-only root", async () => {
    const container = await clone(
      containerSpec({ ...repository(`${server.address}/open`, "v1"), isRootReadOnly: true }),
    );
    expect(await outputOf(container, "cat", "/workspace/file")).toBe("first");
  });

  it("is kept unchanged in the next container", async () => {
    const spec = containerSpec(repository(`${server.address}/open`));
    const first = await clone(spec);
    await outputOf(first, "rm", "/workspace/file");
    await engine.docker.getContainer(first).remove({ force: true });
    const second = await clone(spec);
    expect(await outputOf(second, "git", "-C", "/workspace", "status", "--short")).toBe(" D file\n");
  });

  it("is cloned with credentials that neither the engine nor the clone shows", async () => {
    const since = Math.floor(Date.now() / 1000) - 1;
    const container = await clone(containerSpec(repository(`me:${secret}@${server.address}/private`)));
    expect(await outputOf(container, "cat", "/workspace/file")).toBe("second");
    const remote = await outputOf(container, "git", "-C", "/workspace", "remote", "get-url", "origin");
    expect(remote).toBe(`http://${server.address}/private/repository.git\n`);
    const until = Math.floor(Date.now() / 1000) + 1;
    const events = await text(await engine.docker.getEvents({ since, until }));
    expect(events).toContain("git clone");
    const shown = JSON.stringify(await engine.docker.getContainer(container).inspect());
    expect(events + shown).not.toContain(secret);
    expect(await outputOf(container, "cat", "/workspace/.git/config")).not.toContain(secret);
  });

  it("reports a failed clone with git's message and without credentials", async () => {
    const error = await rejection(clone(containerSpec(repository(`me:${secret}-wrong@${server.address}/private`))));
    expect(error).toMatchObject({ code: "failed_precondition", reason: "workspace_clone_failed" });
    expect(error.message).toMatch(/Authentication failed/);
    expect(JSON.stringify(error) + error.message + error.stack).not.toContain(secret);
    const unknown = await rejection(clone(containerSpec(repository(`${server.address}/open`, "nope"))));
    expect(unknown.message).toContain("Remote branch nope not found");
  });

  it("is rejected if the image has no git", async () => {
    const cloning = clone(containerSpec(repository(`${server.address}/open`)), withoutGit);
    expect(await rejection(cloning)).toMatchObject({ code: "failed_precondition", reason: "no_git_in_image" });
  });

  it("ends the wait at its timeout or at the caller's abort", async () => {
    const spec = containerSpec(repository(`${server.address}/silent`));
    const container = await start(spec);
    expect(await rejection(cloneWorkspace(engine, spec, { container, signal, timeoutMs: 1000 }))).toMatchObject({
      code: "deadline_exceeded",
      reason: "workspace_clone_timeout",
    });
    const gaveUp = AbortSignal.timeout(300);
    const reason = cloneWorkspace(engine, spec, { container, signal: gaveUp }).catch((error: unknown) => error);
    expect(await reason).toBe(gaveUp.reason);
  });

  it("ends the wait in a container that has ended", async () => {
    const spec = containerSpec(repository(`${server.address}/open`));
    const container = await start(spec, withGit, "true");
    await engine.docker.getContainer(container).wait();
    expect((await rejection(cloneWorkspace(engine, spec, { container, signal }))).reason).toBe("container_ended");
  });

  it("requires a network", () => {
    const { workspace } = repository("example.org");
    const spec = containerSpec({ ...(workspace && { workspace }) });
    expect(() => requireWorkspace(spec)).toThrow("it has no network");
    requireWorkspace(containerSpec(repository("example.org")));
    requireWorkspace(containerSpec());
  });
});
