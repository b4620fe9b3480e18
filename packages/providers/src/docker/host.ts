import { availableParallelism } from "node:os";
import { join } from "node:path";
import { type Clock, SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { PathPolicy } from "../host/allowed-path.ts";
import { findAgent } from "../host/find-agent.ts";
import { InstanceStore } from "../host/instance-store.ts";
import type { KillList } from "../host/kill-list.ts";
import { Semaphore } from "../host/semaphore.ts";
import { type AgentStreams, agentStreams } from "./channel/agent-streams.ts";
import type { NetworkPolicy } from "./container/network.ts";
import type { PortPolicy } from "./container/ports.ts";
import { Engine } from "./engine/engine.ts";
import { findEndpoint } from "./engine/find-endpoint.ts";
import { killContainersTarget } from "./engine/kill-containers-target.ts";
import { homeOf } from "./engine/labels.ts";
import { EngineEvents } from "./events/engine-events.ts";
import { AgentVolume } from "./storage/agent-volume.ts";
import type { ReadWorkspace } from "./workspace/copy-workspace.ts";

export const DEFAULT_IMAGE = "python:3.13-slim";
/** gVisor isolates containers from the kernel; used where the engine has it. */
const PREFERRED_RUNTIME = "runsc";
/** More concurrent starts only slow each other down: an engine serializes most of the work. */
const BOOTS_PER_PROCESSOR = 2;

/** Node.js names of processors, and their names in images. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: "amd64", arm64: "arm64" };

export interface DockerOptions {
  readonly stateDirectory: string;
  /** For sandboxes that set no image. */
  readonly image?: string | undefined;
  /** The engine's address; overrides the environment. */
  readonly engineUrl?: string | undefined;
  /** Directories of the engine's machine that sandboxes may mount, subdirectories included; none by default. */
  readonly allowedPaths?: readonly string[] | undefined;
  /** Networks that sandboxes may join, besides `none`. */
  readonly networks?: readonly string[] | undefined;
  /** Host ports that sandboxes may choose, such as `8080` and `9000-9100`; none by default. */
  readonly hostPorts?: readonly string[] | undefined;
  /** Addresses at which sandboxes may publish ports, besides 127.0.0.1. */
  readonly hostAddresses?: readonly string[] | undefined;
  /** The OCI runtime; by default gVisor where the engine has it, otherwise the engine's default. */
  readonly runtime?: string | undefined;
  /** Receives what the lease guard must kill, for nodes of a cluster. */
  readonly killList?: KillList | undefined;
  /** Identifies this home on the engine; follows from the state directory by default. */
  readonly home?: string | undefined;
  /** Reads workspaces that are copied. */
  readonly readWorkspace?: ReadWorkspace | undefined;
}

/** Everything that creating containers needs. */
export interface DockerHost extends NetworkPolicy, PortPolicy {
  readonly stateDirectory: string;
  /** Identifies this home's containers and volumes among those of other homes on the same engine. */
  readonly home: string;
  readonly store: InstanceStore;
  readonly engine: Engine;
  readonly events: EngineEvents;
  readonly agentVolume: AgentVolume;
  readonly agentStreams: AgentStreams;
  readonly image: string;
  readonly runtime: string | undefined;
  readonly paths: PathPolicy;
  readonly boots: Semaphore;
  readonly readWorkspace: ReadWorkspace | undefined;
}

/** Connects to the engine, and throws an error with a hint if a requirement is missing. */
export async function findDockerHost(options: DockerOptions, clock: Clock): Promise<DockerHost> {
  const { stateDirectory, engineUrl, killList } = options;
  const agent = findAgent();
  const endpoint = await findEndpoint(engineUrl);
  const engine = await Engine.connect(endpoint);
  requireSameProcessor(engine);
  requireRuntime(engine, options.runtime);
  const home = options.home ?? homeOf(stateDirectory);
  const targetsOf = (id: SandboxId) => [killContainersTarget(engine, { id, home, engineUrl })];
  const isRemote = endpoint.url.protocol !== "unix:";
  return {
    stateDirectory,
    home,
    store: new InstanceStore(join(stateDirectory, "docker/instances"), { killList, targetsOf }),
    engine,
    events: new EngineEvents({ engine, home, clock }),
    agentVolume: new AgentVolume({ engine, agent, home }),
    agentStreams: agentStreams(engine),
    image: options.image ?? DEFAULT_IMAGE,
    runtime: options.runtime ?? engine.info.runtimes.find((name) => name === PREFERRED_RUNTIME),
    boots: new Semaphore(BOOTS_PER_PROCESSOR * availableParallelism()),
    networks: options.networks ?? [],
    hostPorts: options.hostPorts ?? [],
    hostAddresses: options.hostAddresses ?? [],
    readWorkspace: options.readWorkspace,
    paths: {
      allowedPaths: options.allowedPaths ?? [],
      ownPaths: [stateDirectory, ...(isRemote ? [] : [decodeURIComponent(endpoint.url.pathname)])],
      isRemote,
    },
  };
}

/** The agent that runs in containers is built for this machine. */
function requireSameProcessor({ info, endpoint }: Engine): void {
  const own = ARCHITECTURES[process.arch] ?? process.arch;
  if (info.os === "linux" && info.architecture === own) return;
  throw new SandboxError("engine_architecture", {
    message: `the engine at ${endpoint.url.href} runs ${info.os}/${info.architecture}, but the agent is built for linux/${own}`,
    hint: "use an engine on linux with the same processor, or set SANDPIPER_AGENT to an agent built for that machine",
  });
}

/** Docker rejects an unknown runtime; Podman silently uses its default instead. */
function requireRuntime({ info, endpoint }: Engine, runtime: string | undefined): void {
  if (runtime === undefined || !info.isPodman || runtime === info.defaultRuntime) return;
  throw new SandboxError("runtime_not_chosen", {
    message: `the engine at ${endpoint.url.href} is Podman with runtime ${info.defaultRuntime}; it cannot use runtime ${runtime} for single containers`,
    hint: `set runtime = "${runtime}" in section [engine] of its containers.conf, and restart Podman`,
  });
}
