import type { SandboxId } from "@sandpiper/protocol";
import type Docker from "dockerode";
import type { Engine } from "../engine/engine.ts";
import { label } from "../engine/labels.ts";

export function containerName(id: SandboxId): string {
  return `sandpiper-${id}`;
}

/** Inspects a sandbox's container; undefined when this home has none. */
export async function inspectContainer(
  { engine, home }: { readonly engine: Engine; readonly home: string },
  id: SandboxId,
): Promise<Docker.ContainerInspectInfo | undefined> {
  const name = containerName(id);
  const found = await engine.find(`inspect container ${name}`, (docker) => docker.getContainer(name).inspect());
  return found?.Config.Labels[label.home] === home ? found : undefined;
}
