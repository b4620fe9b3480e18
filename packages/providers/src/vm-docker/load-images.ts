import { createReadStream } from "node:fs";
import { SandboxError } from "@sandpiper/core";
import { callEngine } from "./engine-http.ts";

export interface LoadImagesOptions {
  /** Paths of files that `docker save` wrote. */
  readonly archives: readonly string[];
  readonly signal: AbortSignal;
}

/** Gives an engine its images: its machine has no network to fetch them by. */
export async function loadImages(engineUrl: string, { archives, signal }: LoadImagesOptions): Promise<void> {
  for (const archive of archives) {
    try {
      const body = createReadStream(archive);
      const opened = new Promise((resolve, reject) => body.once("open", resolve).once("error", reject));
      await opened;
      const answer = await callEngine(engineUrl, { method: "POST", path: "/images/load?quiet=1", body, signal });
      if (answer.includes('"error"')) throw new Error(answer.trim().slice(0, 500));
    } catch (error) {
      signal.throwIfAborted();
      throw new SandboxError("failed_precondition", {
        reason: "image_archive",
        message: `the image archive ${archive} could not be loaded into the machine: ${SandboxError.from(error).message}`,
        hint: "name files in vmDocker.images that `docker save` wrote and this user can read",
        cause: error,
      });
    }
  }
}
