import { homedir } from "node:os";
import { fileURLToPath } from "node:url";
import type { SandboxId } from "@sandpiper/protocol";
import type { KillTarget } from "../../host/kill-list.ts";
import type { Engine } from "./engine.ts";

/** Published packages contain compiled files. */
const program = fileURLToPath(import.meta.url.replace("kill-containers-target.", "kill-containers."));
/** The variables that name an engine and its certificates. */
const VARIABLES = /^DOCKER_/;

/** What the program that kills containers on an engine with TLS receives. */
export interface KillContainersPlan {
  readonly engineUrl: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly homeDirectory: string;
  /** The label of the containers' home. */
  readonly home: string;
}

export interface KillContainersOptions {
  readonly id: SandboxId;
  readonly home: string;
  /** The setting by which the engine was found, if it was set. */
  readonly engineUrl: string | undefined;
}

/** How the lease guard kills a sandbox's containers. It does not speak TLS itself, so it starts a program for that. */
export function killContainersTarget({ endpoint, info }: Engine, options: KillContainersOptions): KillTarget {
  const { id, home, engineUrl } = options;
  const { protocol, host, port, hostname, pathname } = endpoint.url;
  if (protocol === "https:") {
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => VARIABLES.test(name)));
    const plan: KillContainersPlan = { engineUrl, env, homeDirectory: homedir(), home };
    return { command: [process.execPath, program, id, JSON.stringify(plan)] };
  }
  // A URL leaves the default port out.
  const network = port === "" ? `${hostname}:80` : host;
  const address = protocol === "unix:" ? decodeURIComponent(pathname) : network;
  return { containers: { engine: { address, apiVersion: info.apiVersion }, home } };
}

/** How the lease guard kills a container of this host if its engine does not answer. */
export function containerTargets({ endpoint }: Engine, container: string): KillTarget[] {
  return endpoint.url.protocol === "unix:" ? [{ container }] : [];
}
