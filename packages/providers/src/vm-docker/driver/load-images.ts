import { once } from "node:events";
import { createReadStream } from "node:fs";
import { SandboxError } from "@sandpiper/core";
import { callEngine } from "./engine-http.ts";

export interface LoadImagesOptions {
  /** Paths of files that `docker save` wrote. */
  readonly archives: readonly string[];
  readonly signal: AbortSignal;
}

/** Loads image archives into an engine, whose machine has no network for pulls. */
export async function loadImages(engineUrl: string, { archives, signal }: LoadImagesOptions): Promise<void> {
  for (const archive of archives) {
    try {
      const body = createReadStream(archive);
      await once(body, "open");
      const answer = await callEngine(engineUrl, { method: "POST", path: "/images/load?quiet=1", body, signal });
      if (answer.includes('"error"')) throw new Error(answer.trim().slice(0, 500));
    } catch (error) {
      signal.throwIfAborted();
      throw new SandboxError("image_archive", {
        message: `could not load image archive ${archive} into the machine: ${SandboxError.from(error).message}`,
        hint: "list only files in vmDocker.images that `docker save` wrote and that this user can read",
        cause: error,
      });
    }
  }
}

/** Replaces the hint of a failed pull: the machines of projects have no network, so a retry cannot help. */
export function explainMissingImage(thrown: unknown): unknown {
  if (!(thrown instanceof SandboxError) || thrown.reason !== "registry_unreachable") return thrown;
  return new SandboxError("image_not_in_machine", {
    message: `${thrown.message}; the machines of projects have no network`,
    hint: "write the image to a file with `docker save`, and list that file in vmDocker.images",
    cause: thrown,
  });
}
