import { createHash, randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import type Docker from "dockerode";
import { pack } from "tar-stream";
import type { Engine } from "../engine/engine.ts";
import { label } from "../engine/labels.ts";
import { AGENT_PATH, agentMount } from "./mounts.ts";

/** The agent's path in a container. */
export const AGENT_PROGRAM = `${AGENT_PATH}/agent`;

export interface AgentVolumeOptions {
  readonly engine: Engine;
  /** The path of the agent's binary on this machine. */
  readonly agent: string;
  readonly home: string;
}

/**
 * The volume with the agent's binary. Its name contains the binary's digest; it is filled once on each engine and shared by all
 * containers. A bind mount would fail on an engine that runs on another machine.
 */
export class AgentVolume {
  readonly #options: AgentVolumeOptions;
  #binary: Promise<Buffer> | undefined;
  #filled: Promise<void> | undefined;

  constructor(options: AgentVolumeOptions) {
    this.#options = options;
  }

  /** Creates the volume if necessary, possibly empty, and returns its name. */
  async create(): Promise<string> {
    const name = `sandpiper-agent-${createHash("sha256")
      .update(await this.#read())
      .digest("hex")
      .slice(0, 16)}`;
    if (this.#filled === undefined) {
      const Labels = { [label.managed]: "true" };
      await this.#options.engine.call(`create volume ${name}`, (docker) => docker.createVolume({ Name: name, Labels }));
    }
    return name;
  }

  /** Ensures that the volume contains the agent. The container mounts it and has not started yet. */
  fill(container: Docker.Container, image: string): Promise<void> {
    this.#filled ??= this.#fill(container, image).catch((error: unknown) => {
      this.#filled = undefined;
      throw error;
    });
    return this.#filled;
  }

  /** Makes the next `fill` check the volume again: another client may have removed it. */
  recheck(): void {
    this.#filled = undefined;
  }

  async #fill(container: Docker.Container, image: string): Promise<void> {
    const { engine, home } = this.#options;
    const binary = await this.#read();
    if ((await sizeOf(engine, container)) === binary.length) return;
    const volume = await this.create();
    // The sandbox's own container mounts it read-only, which also applies to the engine's uploads.
    const filler = await engine.call(`fill volume ${volume}`, (docker) =>
      docker.createContainer({
        Image: image,
        Entrypoint: [AGENT_PROGRAM],
        Cmd: [],
        Labels: { [label.managed]: "true", [label.home]: home },
        NetworkDisabled: true,
        HostConfig: { NetworkMode: "none", Mounts: [agentMount(volume, { isReadOnly: false })] },
      }),
    );
    try {
      await engine.call(`fill volume ${volume}`, () => filler.putArchive(archive(binary), { path: AGENT_PATH }));
    } finally {
      await engine.call(`remove container ${filler.id}`, () => filler.remove({ force: true, v: true }));
    }
  }

  #read(): Promise<Buffer> {
    this.#binary ??= readFile(this.#options.agent);
    return this.#binary;
  }
}

/** Writes the binary under a unique name and then links it, so that no container sees a partial agent. */
function archive(binary: Buffer): NodeJS.ReadableStream {
  const draft = `agent-${randomUUID()}`;
  const tar = pack();
  tar.entry({ name: draft, mode: 0o755 }, binary);
  // The link needs the mode, too: Podman applies it to the target.
  tar.entry({ name: "agent", type: "link", linkname: draft, mode: 0o755 });
  tar.finalize();
  // tar-stream has its own stream types.
  return tar as unknown as NodeJS.ReadableStream;
}

/** The size of the agent in the volume; undefined if it is missing. */
async function sizeOf(engine: Engine, container: Docker.Container): Promise<number | undefined> {
  const answer = await engine.find(`stat ${AGENT_PROGRAM} in container ${container.id}`, () =>
    container.infoArchive({ path: AGENT_PROGRAM }),
  );
  if (answer === undefined) return undefined;
  const { headers } = (answer as unknown as IncomingMessage).resume();
  const stat = Buffer.from(String(headers["x-docker-container-path-stat"]), "base64").toString();
  return (JSON.parse(stat) as { readonly size: number }).size;
}
