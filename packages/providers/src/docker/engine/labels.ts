import { createHash } from "node:crypto";
import type { InstanceSpec } from "@sandpiper/core";

/** By which an engine knows what belongs to Sandpiper. Everybody who may use the engine reads them: no secret stands here. */
export const label = {
  managed: "sandpiper.managed",
  sandbox: "sandpiper.sandbox",
  project: "sandpiper.project",
  home: "sandpiper.home",
  cache: "sandpiper.cache",
  /** The image that a sandbox's reference meant when it was made. */
  image: "sandpiper.image",
  /** Whom the image's programs run as. */
  user: "sandpiper.user",
} as const;

export type Labels = Readonly<Record<string, string>>;

/** The project of sandboxes that name none. */
const DEFAULT_PROJECT = "default";

/** Several homes may use one engine; each sees only what carries its own mark. */
export function homeOf(stateDirectory: string): string {
  return createHash("sha256").update(stateDirectory).digest("hex").slice(0, 12);
}

export function projectOf({ container }: InstanceSpec): string {
  return container?.project ?? DEFAULT_PROJECT;
}

/** Of a sandbox's container, and of the volumes that are its own. */
export function sandboxLabels(spec: InstanceSpec, home: string): Labels {
  return { ...managedLabels(home), [label.sandbox]: spec.id, [label.project]: projectOf(spec) };
}

/** Of a volume that belongs to a project and to none of its sandboxes. */
export function cacheLabels(cache: { readonly project: string; readonly name: string }, home: string): Labels {
  return { ...managedLabels(home), [label.project]: cache.project, [label.cache]: cache.name };
}

function managedLabels(home: string): Labels {
  return { [label.managed]: "true", [label.home]: home };
}
