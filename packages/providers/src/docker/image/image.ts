import { SandboxError } from "@sandpiper/core";
import type Docker from "dockerode";
import type { Engine } from "../engine/engine.ts";

/** An image in an engine. */
export interface EngineImage {
  readonly id: string;
  /** The requested reference. */
  readonly reference: string;
  /** The user of its programs: a name, `UID:GID`, or empty for root. */
  readonly user: string;
  /** amd64, arm64, … */
  readonly architecture: string;
  readonly os: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly command: ImageCommand;
}

/** What the image runs by itself. */
interface ImageCommand {
  readonly argv: readonly string[];
  readonly cwd: string;
  /** As in the image's USER; empty for root. */
  readonly user: string;
}

/** Processors that also run the programs of another. */
const ALSO_RUNS: Readonly<Record<string, string>> = { amd64: "386", arm64: "arm" };

/** The image to which a reference resolves on an engine, if any. */
export async function resolveImage(
  engine: Engine,
  reference: string,
  signal?: AbortSignal,
): Promise<EngineImage | undefined> {
  const inspect = (docker: Docker) => docker.getImage(reference).inspect();
  const found = await engine.find(`inspect image ${reference}`, inspect, signal);
  if (found === undefined) return undefined;
  return {
    id: found.Id,
    reference,
    user: found.Config?.User ?? "",
    architecture: found.Architecture,
    os: found.Os,
    labels: found.Config?.Labels ?? {},
    command: {
      argv: [...listOf(found.Config?.Entrypoint), ...listOf(found.Config?.Cmd)],
      cwd: found.Config?.WorkingDir || "/",
      user: found.Config?.User ?? "",
    },
  };
}

/** Engines report one word as a string. */
function listOf(words: string | readonly string[] | null | undefined): readonly string[] {
  return typeof words === "string" ? [words] : (words ?? []);
}

/** Rejects an image whose programs this engine's machine cannot run. */
export function requireRunnable({ info }: Engine, image: EngineImage): EngineImage {
  const { architecture, os } = image;
  const isRunnable = architecture === info.architecture || architecture === ALSO_RUNS[info.architecture];
  // An imported image may have no architecture.
  if ((architecture === "" || isRunnable) && (os === "" || os === info.os)) return image;
  throw wrongArchitecture(image.reference, `${os}/${architecture}`, `${info.os}/${info.architecture}`);
}

export function wrongArchitecture(reference: string, found: string, wanted: string): SandboxError {
  return new SandboxError("wrong_architecture", {
    message: `image ${reference} is for ${found}; the engine's machine is ${wanted}`,
    hint: `use an image for ${wanted}`,
    details: { image: reference, found, wanted },
  });
}
