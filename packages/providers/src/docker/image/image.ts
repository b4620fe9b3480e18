import { SandboxError } from "@sandpiper/core";
import type { Engine } from "../engine/engine.ts";

/** An image that an engine has. */
export interface EngineImage {
  readonly id: string;
  /** As it was asked for. */
  readonly reference: string;
  /** Whom its programs run as: a name, `UID:GID`, or nothing, which is root. */
  readonly user: string;
  readonly workingDir: string;
  /** In Go's words: amd64, arm64, … */
  readonly architecture: string;
  readonly os: string;
  readonly repoDigests: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
}

/** Processors that run programs of another as well, in Go's words. */
const ALSO_RUNS: Readonly<Record<string, string>> = { amd64: "386", arm64: "arm" };

/** The image that a reference means to an engine, if it has one. */
export async function resolveImage(
  engine: Engine,
  reference: string,
  signal?: AbortSignal,
): Promise<EngineImage | undefined> {
  const found = await engine
    .call(`look at image ${reference}`, (docker) => docker.getImage(reference).inspect(), signal)
    .catch((error: unknown) => {
      if (error instanceof SandboxError && error.code === "not_found") return undefined;
      throw error;
    });
  if (found === undefined) return undefined;
  return {
    id: found.Id,
    reference,
    user: found.Config?.User ?? "",
    workingDir: found.Config?.WorkingDir ?? "",
    architecture: found.Architecture,
    os: found.Os,
    repoDigests: found.RepoDigests ?? [],
    labels: found.Config?.Labels ?? {},
  };
}

/** Refuses an image whose programs this engine's machine cannot run. */
export function requireRunnable({ info }: Engine, image: EngineImage): EngineImage {
  const { architecture, os } = image;
  const isRunnable = architecture === info.architecture || architecture === ALSO_RUNS[info.architecture];
  // What was imported may not say what it is for.
  if ((architecture === "" || isRunnable) && (os === "" || os === info.os)) return image;
  throw wrongArchitecture(image.reference, `${os}/${architecture}`, `${info.os}/${info.architecture}`);
}

export function wrongArchitecture(reference: string, found: string, wanted: string): SandboxError {
  return new SandboxError("invalid_argument", {
    reason: "wrong_architecture",
    message: `the image ${reference} is for ${found}; this engine's machine is ${wanted}`,
    hint: `use an image that is built for ${wanted}`,
    details: { image: reference, found, wanted },
  });
}
