import { createHash, randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { SandboxError } from "@sandpiper/core";
import type Docker from "dockerode";
import { pack } from "tar-stream";
import type { Engine } from "../engine/engine.ts";
import { label } from "../engine/labels.ts";
import { AGENT_PATH } from "./mounts.ts";

/** The agent's program inside a container. */
export const AGENT_PROGRAM = `${AGENT_PATH}/agent`;

export interface AgentVolumeOptions {
  readonly engine: Engine;
  /** The agent's binary on this machine. */
  readonly agent: string;
  readonly home: string;
}

/**
 * The volume that brings the agent into containers. It is named for its content, filled once on each engine and shared by all
 * containers, so that no path of this machine has to be known to the engine's.
 */
export class AgentVolume {
  readonly #options: AgentVolumeOptions;
  #binary: Promise<Buffer> | undefined;
  #filled: Promise<void> | undefined;

  constructor(options: AgentVolumeOptions) {
    this.#options = options;
  }

  /** Its name; it is there afterwards, and may be empty. */
  async make(): Promise<string> {
    const name = `sandpiper-agent-${createHash("sha256")
      .update(await this.#read())
      .digest("hex")
      .slice(0, 16)}`;
    if (this.#filled === undefined) {
      const Labels = { [label.managed]: "true" };
      await this.#options.engine.call(`make volume ${name}`, (docker) => docker.createVolume({ Name: name, Labels }));
    }
    return name;
  }

  /** Makes sure that the agent is in it. The container has it mounted, is of this image, and was not started yet. */
  fill(container: Docker.Container, image: string): Promise<void> {
    this.#filled ??= this.#fill(container, image).catch((error: unknown) => {
      this.#filled = undefined;
      throw error;
    });
    return this.#filled;
  }

  /** Looks again next time: somebody may have removed it. */
  distrust(): void {
    this.#filled = undefined;
  }

  async #fill(container: Docker.Container, image: string): Promise<void> {
    const { engine, home } = this.#options;
    const binary = await this.#read();
    if ((await sizeOf(engine, container)) === binary.length) return;
    const volume = await this.make();
    // In the sandbox's own container it is read-only, for the engine as well.
    const filler = await engine.call(`fill volume ${volume}`, (docker) =>
      docker.createContainer({
        Image: image,
        Entrypoint: [AGENT_PROGRAM],
        Cmd: [],
        Labels: { [label.managed]: "true", [label.home]: home },
        NetworkDisabled: true,
        HostConfig: {
          NetworkMode: "none",
          Mounts: [
            {
              Type: "volume",
              Source: volume,
              Target: AGENT_PATH,
              VolumeOptions: { NoCopy: true, Labels: {}, DriverConfig: { Name: "local", Options: {} } },
            },
          ],
        },
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

/** Written under a name of its own first: somebody else may be filling it too, and a container must not see half an agent. */
function archive(binary: Buffer): NodeJS.ReadableStream {
  const draft = `agent-${randomUUID()}`;
  const tar = pack();
  tar.entry({ name: draft, mode: 0o755 }, binary);
  // With its mode too: Podman gives a link's mode to what it leads to.
  tar.entry({ name: "agent", type: "link", linkname: draft, mode: 0o755 });
  tar.finalize();
  // Its types are of another implementation of streams.
  return tar as unknown as NodeJS.ReadableStream;
}

/** Of the agent that is there; undefined when there is none. */
async function sizeOf(engine: Engine, container: Docker.Container): Promise<number | undefined> {
  try {
    const answer = await engine.call(`look at ${AGENT_PROGRAM} of container ${container.id}`, () =>
      container.infoArchive({ path: AGENT_PROGRAM }),
    );
    const { headers } = (answer as unknown as IncomingMessage).resume();
    const stat = Buffer.from(String(headers["x-docker-container-path-stat"]), "base64").toString();
    return (JSON.parse(stat) as { readonly size: number }).size;
  } catch (error) {
    if (error instanceof SandboxError && error.code === "not_found") return undefined;
    throw error;
  }
}
