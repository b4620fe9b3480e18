import { statSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { SandboxError } from "@sandpiper/core";
import { contextEndpoint, currentContext } from "./docker-context.ts";
import { type Endpoint, parseEndpointUrl, readTls } from "./endpoint.ts";

/** What the search reads; replaced in tests. */
export interface EndpointSurroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly homeDirectory: string;
  readonly uid: number;
  isSocket(path: string): boolean;
}

/** Finds the engine like Docker's client, then at the sockets of rootless Docker and Podman. */
export async function findEndpoint(
  engineUrl?: string | undefined,
  surroundings: EndpointSurroundings = thisMachine(),
): Promise<Endpoint> {
  const { env, homeDirectory } = surroundings;
  const directory = env["DOCKER_CONFIG"] || join(homeDirectory, ".docker");
  if (engineUrl !== undefined) return await named(engineUrl, "the engine URL setting", env, directory);
  const host = env["DOCKER_HOST"];
  if (host) return await named(host, "DOCKER_HOST", env, directory);
  const context = await currentContext(env, directory);
  if (context !== undefined) return await contextEndpoint(context, directory);
  return findSocket(surroundings);
}

async function named(
  text: string,
  origin: string,
  env: EndpointSurroundings["env"],
  directory: string,
): Promise<Endpoint> {
  const isVerified = (env["DOCKER_TLS_VERIFY"] ?? "") !== "";
  const wantsTls = isVerified || (env["DOCKER_TLS"] ?? "") !== "";
  const url = parseEndpointUrl(text, { origin, isTls: wantsTls });
  if (url.protocol !== "https:") return { url, origin, tls: undefined };
  const certificates = env["DOCKER_CERT_PATH"] || (wantsTls ? directory : undefined);
  // A plain https: URL requires a certificate that the system trusts.
  if (certificates === undefined) return { url, origin, tls: undefined };
  return { url, origin, tls: await readTls(certificates, { isVerified: isVerified || !wantsTls }) };
}

function findSocket(surroundings: EndpointSurroundings): Endpoint {
  const { env, homeDirectory, uid } = surroundings;
  const runtime = env["XDG_RUNTIME_DIR"] || `/run/user/${uid}`;
  const paths = [
    "/var/run/docker.sock",
    join(homeDirectory, ".docker/run/docker.sock"),
    join(runtime, "docker.sock"),
    join(runtime, "podman/podman.sock"),
    "/run/podman/podman.sock",
  ];
  const path = paths.find((candidate) => surroundings.isSocket(candidate));
  if (path !== undefined)
    return { url: new URL(`unix://${path}`), origin: "found at its default path", tls: undefined };
  throw new SandboxError("engine_missing", {
    message: `no container engine found: DOCKER_HOST is not set, no Docker context is active, and no socket exists at ${paths.join(", ")}`,
  });
}

export function thisMachine(): EndpointSurroundings {
  return { env: process.env, homeDirectory: homedir(), uid: process.getuid?.() ?? 0, isSocket };
}

function isSocket(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isSocket() ?? false;
}
