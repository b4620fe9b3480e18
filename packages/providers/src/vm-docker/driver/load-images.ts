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
