import { SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type Docker from "dockerode";
import { label } from "../engine/labels.ts";
import type { DockerHost } from "../host.ts";
import { containerName } from "./container-name.ts";

/** What the engine knows of a sandbox's container; undefined when this home has none. */
export async function inspectContainer(
  { engine, home }: Pick<DockerHost, "engine" | "home">,
  id: SandboxId,
): Promise<Docker.ContainerInspectInfo | undefined> {
  const name = containerName(id);
  try {
    const found = await engine.call(`look at container ${name}`, (docker) => docker.getContainer(name).inspect());
    return found.Config.Labels[label.home] === home ? found : undefined;
  } catch (error) {
    if (error instanceof SandboxError && error.code === "not_found") return undefined;
    throw error;
  }
}
