import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { SandboxError } from "@sandpiper/core";
import { readDockerConfig } from "../../host/docker-config.ts";
import { type Endpoint, parseEndpointUrl, readTls } from "./endpoint.ts";

/** The context that Docker's client would use; undefined for `default`. */
export async function currentContext(
  env: Readonly<Record<string, string | undefined>>,
  directory: string,
): Promise<string | undefined> {
  const name = env["DOCKER_CONTEXT"] || (await readDockerConfig(directory)).currentContext;
  return name === undefined || name === "default" ? undefined : name;
}

/** Written by `docker context create`. */
interface ContextFile {
  readonly Endpoints?: { readonly docker?: { readonly Host?: string; readonly SkipTLSVerify?: boolean } };
}

export async function contextEndpoint(name: string, directory: string): Promise<Endpoint> {
  const id = createHash("sha256").update(name).digest("hex");
  const origin = `the context ${JSON.stringify(name)}`;
  const path = join(directory, "contexts/meta", id, "meta.json");
  const { Endpoints } = await readFile(path, "utf8")
    .then((text): ContextFile => JSON.parse(text))
    .catch((cause: unknown) => Promise.reject(unusable(name, `cannot read ${path}`, cause)));
  const docker = Endpoints?.docker;
  if (!docker?.Host) throw unusable(name, `${path} contains no Docker endpoint`);
  const certificates = join(directory, "contexts/tls", id, "docker");
  const isTls = (await readdir(certificates).catch(() => [])).length > 0;
  const url = parseEndpointUrl(docker.Host, { origin, isTls });
  if (url.protocol !== "https:" || !isTls) return { url, origin, tls: undefined };
  return { url, origin, tls: await readTls(certificates, { isVerified: docker.SkipTLSVerify !== true }) };
}

function unusable(name: string, why: string, cause?: unknown): SandboxError {
  return new SandboxError("engine_context", {
    message: `cannot use Docker context ${JSON.stringify(name)}: ${why}`,
    hint: "choose another context with `docker context use`, or set DOCKER_HOST to the engine's address",
    cause,
  });
}
