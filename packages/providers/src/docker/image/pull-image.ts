import type { Readable } from "node:stream";
import { type PullOptions, type PullProgress, SandboxError } from "@sandpiper/core";
import { parseImageReference } from "../../host/image-reference.ts";
import { registryCredential } from "../../host/registry-credential.ts";
import { SharedPulls } from "../../host/shared-pulls.ts";
import type { Engine } from "../engine/engine.ts";
import { readLines } from "../engine/read-lines.ts";
import { type EngineImage, requireRunnable, resolveImage } from "./image.ts";
import { pullError } from "./pull-error.ts";
import { PullReader } from "./pull-reader.ts";

/** The downloads in progress on each engine. */
const pulls = new WeakMap<Engine, SharedPulls<EngineImage>>();

/** Ensures that the engine has an image for its machine, according to the policy. */
export async function pullImage(engine: Engine, reference: string, options: PullOptions): Promise<EngineImage> {
  const { policy, signal, onProgress } = options;
  signal.throwIfAborted();
  if (policy !== "always") {
    const found = await resolveImage(engine, reference, signal);
    if (found !== undefined) return requireRunnable(engine, found);
    if (policy === "never") throw notFound(reference);
  }
  const shared = pulls.get(engine) ?? new SharedPulls();
  pulls.set(engine, shared);
  const work = (abort: AbortSignal, report: (progress: PullProgress) => void) =>
    download(engine, reference, abort, report);
  return requireRunnable(engine, await shared.join(reference, work, { signal, onProgress }));
}

async function download(
  engine: Engine,
  reference: string,
  signal: AbortSignal,
  report: (progress: PullProgress) => void,
): Promise<EngineImage> {
  const { registry, name, tag } = parseImageReference(reference);
  const authconfig = await registryCredential(registry);
  const lines = new PullReader(reference);
  try {
    const options = { fromImage: name, tag, abortSignal: signal };
    const stream = (await (authconfig === undefined
      ? engine.docker.createImage(options)
      : engine.docker.createImage(authconfig, options))) as Readable;
    for await (const line of readLines(stream)) {
      const progress = lines.read(line);
      if (progress !== undefined) report(progress);
    }
    signal.throwIfAborted();
  } catch (thrown) {
    throw pullError(thrown, reference, engine);
  }
  const image = await resolveImage(engine, reference, signal);
  if (image !== undefined) return image;
  throw new SandboxError("image_lost", {
    message: `image ${reference} is missing after its download`,
    hint: "another client may have removed it; try again",
  });
}

function notFound(reference: string): SandboxError {
  return new SandboxError("image_not_found", {
    message: `image ${reference} not found on the engine, and imagePullPolicy is "never"`,
    hint: `pull it with \`docker pull ${reference}\`, or set imagePullPolicy to "missing"`,
    details: { image: reference },
  });
}
