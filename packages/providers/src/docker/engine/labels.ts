import { createHash } from "node:crypto";
import type { InstanceSpec } from "@sandpiper/core";

/** The labels of everything that Sandpiper creates on an engine. Every client of the engine can read them: no secrets. */
export const label = {
  managed: "sandpiper.managed",
  sandbox: "sandpiper.sandbox",
  project: "sandpiper.project",
  home: "sandpiper.home",
  cache: "sandpiper.cache",
  /** The image that the sandbox's reference resolved to at its creation. */
  image: "sandpiper.image",
  /** The user of the image's programs. */
  user: "sandpiper.user",
  /** The image's own command, as JSON; a checkpoint's image has the agent's. */
  command: "sandpiper.command",
} as const;

export type Labels = Readonly<Record<string, string>>;

/** The project of sandboxes that set none. */
const DEFAULT_PROJECT = "default";

/** Several homes may share one engine; each sees only what has its own label. */
export function homeOf(stateDirectory: string): string {
  return createHash("sha256").update(stateDirectory).digest("hex").slice(0, 12);
}

export function projectOf({ container }: InstanceSpec): string {
  return container?.project ?? DEFAULT_PROJECT;
}

/** For a sandbox's container and its own volumes. */
export function sandboxLabels(spec: InstanceSpec, home: string): Labels {
  return { ...managedLabels(home), [label.sandbox]: spec.id, [label.project]: projectOf(spec) };
}

/** For a volume of a destroyed sandbox. */
export function keptLabels(sandbox: string, home: string): Labels {
  return { ...managedLabels(home), [label.sandbox]: sandbox };
}

/** For a volume that the sandboxes of a project share. */
export function cacheLabels(cache: { readonly project: string; readonly name: string }, home: string): Labels {
  return { ...managedLabels(home), [label.project]: cache.project, [label.cache]: cache.name };
}

function managedLabels(home: string): Labels {
  return { [label.managed]: "true", [label.home]: home };
}
